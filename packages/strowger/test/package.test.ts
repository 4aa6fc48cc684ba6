import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { nodeOrSkip } from "./binary.js";

const { program: binary, skip } = nodeOrSkip();
const root = fileURLToPath(new URL("../../", import.meta.url));

/** Runs a program to its end and returns what it printed, line by line. */
function run(program: string, args: readonly string[], cwd: string): string[] {
  const out = execFileSync(program, args, { cwd, encoding: "utf8", timeout: 120_000 });
  return out.trim().split("\n");
}

for (const [example, printed] of [
  ["counter", ["3", "1", "1"]],
  ["ask", ["paid 20", "refused false", "deadline true"]],
  ["stream", ["1", "2", "3", "the producer left", "true"]],
  ["pipeline", ['{"a":3,"rose":3,"is":2,"end":1}']],
] as const) {
  test(`the example ${example} prints what it says`, () => {
    assert.deepEqual(run(process.execPath, [`dist/examples/${example}.js`], root), printed);
  });
}

test("the example topic prints what it says", { skip, timeout: 120_000 }, () => {
  const env = { ...process.env, STROWGER_BIN: binary };
  const out = execFileSync(process.execPath, ["dist/examples/topic.js"], {
    cwd: root,
    encoding: "utf8",
    env,
  });
  assert.deepEqual(out.trim().split("\n"), ["1 established", "2 established", "3 established"]);
});

test("the example tools prints what it says", { skip, timeout: 120_000 }, () => {
  const env = { ...process.env, STROWGER_BIN: binary };
  const out = execFileSync(process.execPath, ["dist/examples/tools.js"], {
    cwd: root,
    encoding: "utf8",
    env,
  });
  assert.deepEqual(out.trim().split("\n"), ["refused", "one two", "0"]);
});

test("the example code prints what it says", { skip, timeout: 120_000 }, () => {
  const env = { ...process.env, STROWGER_BIN: binary };
  const out = execFileSync(process.execPath, ["dist/examples/code.js"], {
    cwd: root,
    encoding: "utf8",
    env,
  });
  const refused = ["thrown ReferenceError", "thrown Error"];
  const printed = ["3 calls for 2", "Almon owes 320, Emma owes 160", ...refused, "true", "42"];
  assert.deepEqual(out.trim().split("\n"), printed);
});

test("the package bundles for browsers, and nothing of Node is in it", () => {
  const folder = mkdtempSync(join(root, "dist/bundle-"));
  try {
    const page = 'import { connect, startNode } from "strowger";\n'
      + "globalThis.page = { connect, startNode };\n";
    writeFileSync(join(folder, "page.js"), page);
    const bun = join(root, "node_modules/.bin/bun");
    run(bun, ["build", "page.js", "--target", "browser", "--outfile", "bundle.js"], folder);
    const bundle = readFileSync(join(folder, "bundle.js"), "utf8");
    assert.match(bundle, /a browser starts no node/);
    assert.doesNotMatch(bundle, /"node:|Buffer\.|process\./);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a fresh project installs the package, and the first example compiles and runs", () => {
  const folder = mkdtempSync(join(tmpdir(), "strowger-"));
  try {
    const pack = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder];
    const [archive] = run("npm", pack, root).slice(-1);
    assert.ok(archive !== undefined);
    const project = join(folder, "project");
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), '{ "type": "module" }');
    run("npm", ["install", "--offline", "--silent", join(folder, archive)], project);
    const example = /```ts\n(.*?)```/s.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1];
    assert.ok(example !== undefined);

    writeFileSync(join(project, "first.ts"), example);
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const flags = ["--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"];
    const types = ["--typeRoots", join(root, "node_modules/@types")];
    run("node", [tsc, ...flags, ...types, "first.ts"], project);
    assert.deepEqual(run(process.execPath, ["first.js"], project), ["42", "0", "40", "42"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
