import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const repository = join(root, "../../");

/** Returns the programs of a page, and the output that their comments promise. */
function programs(page: string): { readonly text: string; readonly prints: readonly string[] }[] {
  const text = readFileSync(join(repository, page), "utf8");
  return Array.from(text.matchAll(/```ts\n(.*?)```/gs), ([, program = ""]) => ({
    text: program,
    prints: Array.from(program.matchAll(/console\.log\(.*\); \/\/ (.*)/g), ([, said = ""]) => said),
  }));
}

const guides = ["nact", "effect", "akka-typescript"].map((page) => `docs/guides/${page}.md`);
for (const page of guides) {
  test(`the programs of ${page} compile, and print what they say`, () => {
    // Inside the package, so that programs can import it by name, as well as nact.
    const folder = join(root, `dist/page-${basename(page, ".md")}-${process.pid}`);
    mkdirSync(folder, { recursive: true });
    try {
      const all = programs(page);
      assert.ok(all.length > 0);
      const files = all.map(({ text }, n) => {
        writeFileSync(join(folder, `program-${n}.ts`), text);
        return `program-${n}`;
      });
      const flags = ["--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"];
      const tsc = join(root, "node_modules/typescript/bin/tsc");
      const sources = files.map((file) => `${file}.ts`);
      const limit = { timeout: 100_000, killSignal: "SIGKILL" } as const;
      const how = { cwd: folder, encoding: "utf8", ...limit } as const;
      execFileSync("node", [tsc, ...flags, "--ignoreConfig", ...sources], how);
      for (const [n, { prints }] of all.entries()) {
        const printed = execFileSync(process.execPath, [`${files[n]}.js`], how);
        assert.deepEqual(printed.trim().split("\n"), prints);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
