import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { nodeOrSkip } from "./binary.js";

const { program: binary, skip } = nodeOrSkip();
const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Runs a program to completion and returns its output, line by line. A program that takes too long
 * is killed; a node that it has started ends with it.
 */
function run(program: string, args: readonly string[], cwd: string, env = process.env): string[] {
  const limit = { timeout: 240_000, killSignal: "SIGKILL" } as const;
  const out = execFileSync(program, args, { cwd, encoding: "utf8", env, ...limit });
  return out.trim().split("\n");
}

/** Runs an example that starts a node. */
function runWithNode(example: string): string[] {
  const env = { ...process.env, STROWGER_BIN: binary };
  return run(process.execPath, [`dist/examples/${example}.js`], root, env);
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

test("the example topic prints what it says", { skip, timeout: 300_000 }, () => {
  assert.deepEqual(runWithNode("topic"), ["1 established", "2 established", "3 established"]);
});

test("the example tools prints what it says", { skip, timeout: 300_000 }, () => {
  assert.deepEqual(runWithNode("tools"), ["refused", "one two", "0"]);
});

test("the example code prints what it says", { skip, timeout: 300_000 }, () => {
  const refused = ["thrown ReferenceError", "thrown Error"];
  const printed = ["3 calls for 2", "Almon owes 320, Emma owes 160", ...refused, "true", "42"];
  assert.deepEqual(runWithNode("code"), printed);
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

/** Returns the files of the tarball to publish, and its manifest. */
function packed(): { readonly files: ReadonlySet<string>; readonly manifest: Manifest } {
  const out = run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], root).join("\n");
  const said: readonly { readonly files: readonly { readonly path: string }[] }[] = JSON.parse(out);
  const files = new Set(said[0]?.files.map(({ path }) => path));
  return { files, manifest: JSON.parse(readFileSync(join(root, "package.json"), "utf8")) };
}

type Manifest = {
  readonly license: string;
  readonly homepage?: string;
  readonly bugs?: string;
  readonly repository?: { readonly url: string; readonly directory: string };
  readonly keywords?: readonly string[];
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
};

test("the tarball has both licences, and says where the package comes from", () => {
  const { files, manifest } = packed();
  assert.equal(manifest.license, "MIT OR Apache-2.0");
  for (const [file, says] of [
    ["LICENSE-MIT", /Permission is hereby granted/],
    ["LICENSE-APACHE", /Apache License\s+Version 2\.0/],
  ] as const) {
    assert.ok(files.has(file), `${file} is not in the tarball`);
    assert.match(readFileSync(join(root, file), "utf8"), says);
  }
  const home = "https://github.com/strowger/strowger";
  assert.equal(manifest.homepage, home);
  assert.equal(manifest.bugs, `${home}/issues`);
  const repository = { type: "git", url: `git+${home}.git`, directory: "packages/strowger" };
  assert.deepEqual(manifest.repository, repository);
  assert.ok((manifest.keywords?.length ?? 0) >= 3, "keywords");
});

test("each program and each type of the tarball leads to its source, which is there", () => {
  const { files } = packed();
  const made = [...files].filter((file) => /\.(js|d\.ts)$/.test(file));
  assert.ok(made.some((file) => file.endsWith(".js")) && made.some((file) => file.endsWith(".ts")));
  for (const file of made) {
    assert.ok(files.has(`${file}.map`), `${file}.map is not in the tarball`);
    const text = readFileSync(join(root, file), "utf8");
    assert.match(text, new RegExp(`//# sourceMappingURL=${basename(file)}\\.map\\s*$`), file);
    const map: { readonly sources: readonly string[]; readonly sourceRoot?: string } = JSON.parse(
      readFileSync(join(root, `${file}.map`), "utf8"),
    );
    assert.ok(map.sources.length > 0, file);
    for (const source of map.sources) {
      const path = join(dirname(file), map.sourceRoot ?? "", source);
      assert.ok(files.has(path), `${file} comes from ${path}, which is not in the tarball`);
    }
  }
  // Nothing else is published: no tests, examples or benchmarks.
  const rest = [...files].filter((file) => !/^(dist\/src|src)\//.test(file)).sort();
  assert.deepEqual(rest, ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"]);
});

test("the README names no package that does not exist, and links to nothing beside it", () => {
  const { files } = packed();
  for (const file of [...files].filter((file) => /\.(md|js|ts)$/.test(file))) {
    const text = readFileSync(join(root, file), "utf8");
    assert.doesNotMatch(text, /@strowger\//, file);
    if (!file.endsWith(".md")) continue;
    const links = [...text.matchAll(/\]\(([^)\s]+)\)|^\[[^\]]+\]:\s*(\S+)/gm)];
    assert.ok(links.length > 0);
    for (const [, inline, named] of links) {
      const link = inline ?? named ?? "";
      const place = /^https:\/\/github\.com\/strowger\/strowger\/blob\/main\/(.*)$/.exec(link)?.[1];
      const isThere =
        place === undefined ? files.has(link) : existsSync(join(root, "../..", place));
      assert.ok(isThere, `${file} links to ${link}, which is not there`);
    }
  }
});

test("the least TypeScript that is stated compiles what uses each entry of the package", () => {
  const { manifest } = packed();
  const least = /^>=(\d+\.\d+)$/.exec(manifest.peerDependencies?.["typescript"] ?? "")?.[1];
  assert.ok(least !== undefined, "no least TypeScript");
  const readme = readFileSync(join(root, "README.md"), "utf8");
  assert.ok(readme.includes(`TypeScript ${least} and later`), `the README says ${least}`);
  const tsc = join(root, "node_modules/typescript-minimum/bin/tsc");
  assert.match(run("node", [tsc, "--version"], root).join(), new RegExp(`Version ${least}\\.`));
  inFreshProject((project) => {
    const entries = ["", "/files", "/streams", "/code", "/programs", "/frame", "/testing"];
    const all = entries.map((entry, n) => `export * as e${n} from "strowger${entry}";\n`).join("");
    writeFileSync(join(project, "all.ts"), all + "export * from \"./first.js\";\n");
    for (const types of [
      ["--types", "node", "--typeRoots", join(root, "node_modules/@types"), "--lib", "es2022"],
      ["--lib", "es2022,dom"],
    ]) run("node", [tsc, ...FLAGS, ...types, "--noEmit", "all.ts"], project);
  });
});

/** Pages whose examples need a node: they are compiled, but not run. */
const PAGES = ["README.md", "../../docs/components.md"];

test("each example of the pages compiles, with the least TypeScript and with ours", () => {
  inFreshProject((project) => {
    const examples = PAGES.flatMap((page) => {
      const text = readFileSync(join(root, page), "utf8");
      const found = [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code ?? "");
      assert.ok(found.length > 0, `${page} has no example`);
      return found;
    });
    assert.ok(examples.length >= 5, `${examples.length} examples`);
    const files = examples.map((code, n) => {
      writeFileSync(join(project, `example${n}.ts`), code);
      return `example${n}.ts`;
    });
    const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
    for (const compiler of ["typescript-minimum", "typescript"]) {
      const tsc = join(root, "node_modules", compiler, "bin/tsc");
      run("node", [tsc, ...FLAGS, ...types, "--noEmit", ...files], project);
    }
  });
});

test("a fresh project installs the package, and the first example compiles and runs", () => {
  inFreshProject((project) => {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
    run("node", [tsc, ...FLAGS, ...types, "first.ts"], project);
    assert.deepEqual(run(process.execPath, ["first.js"], project), ["42", "0", "40", "42"]);
  });
});

/** Compiler flags of a user's project, without `skipLibCheck`. */
const FLAGS = ["--strict", "--module", "nodenext", "--target", "es2022"] as const;

/** Creates a project with the tarball installed, and with the first example of the README. */
function inFreshProject(look: (project: string) => void): void {
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
    look(project);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
