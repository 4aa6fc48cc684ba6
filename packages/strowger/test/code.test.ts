import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { code, CodeError, type CodeReason, type Line } from "../src/code/index.js";
import { type StartedNode, startNode } from "../src/index.js";
import { programs } from "../src/programs/index.js";
import { engine, nodeOrSkip, patient } from "./binary.js";
import { until } from "./until.js";

const { program: binary, skip } = nodeOrSkip();
const how = { timeout: 60_000, skip };

let node: StartedNode | undefined;
let folder = "";
before(async () => {
  if (skip !== false) return;
  folder = mkdtempSync(join(tmpdir(), "strowger-"));
  mkdirSync(join(folder, "data"));
  writeFileSync(join(folder, "data/note.txt"), "call back");
  const config = join(folder, "node.toml");
  const long = `time = "10m"\ndeadline = "10m"\ncalls = 2\n`;
  const tools = ["code", "programs"].map((tool) =>
    `[tools.${tool}]\nenabled = true\n[tools.${tool}.limits]\n${long}`,
  );
  const components = `[components]\ncache = ${JSON.stringify(engine())}\n`;
  writeFileSync(config, `${components}[[tools.files]]\nroot = "data"\n${tools.join("")}`);
  node = await startNode({ ...patient, binary, args: ["--port", "0", "--config", config] });
});
after(async () => {
  await node?.stop();
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
});

function there(): StartedNode {
  assert.ok(node !== undefined);
  return node;
}

/** Returns a check that an error is a CodeError with this reason. */
function because(reason: CodeReason): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof CodeError, String(error));
    assert.equal(error.reason, reason);
    return true;
  };
}

test("code has a value, its arguments, and its output", how, async () => {
  const tool = code(there());
  const seen: Line[] = [];
  const onOutput = (line: Line): void => void seen.push(line);
  const source = "const sum: number = args.a + args.b; console.log('adding'); sum as number";
  const args = { a: 1, b: 2 };
  const ran = await tool.execute(source, { language: "ts", args, onOutput });
  const output = [{ level: "log", text: "adding" }];
  assert.deepEqual(ran, { value: 3, output, fresh: true });
  assert.deepEqual(seen, output);
  assert.equal((await tool.execute("undefined")).value, null);
  assert.equal((await tool.execute("await Promise.resolve(4)")).value, 4);
  const nothing = await tool.execute("[typeof args, Object.keys(fns)]");
  assert.deepEqual(nothing.value, ["undefined", []]);
});

test("what goes wrong has its reason and its place", how, async () => {
  const tool = code(there());
  await assert.rejects(tool.execute("1;\nnull.x"), (error) => {
    assert.ok(error instanceof CodeError);
    assert.equal(error.reason, "thrown");
    assert.equal(error.code, "failed");
    assert.equal(error.thrown?.name, "TypeError");
    assert.equal(error.thrown?.line, 2);
    return true;
  });
  const limits = { time_ms: 50 };
  await assert.rejects(tool.execute("for (;;);", { limits }), because("time"));
  await assert.rejects(tool.execute("'x'.repeat(2 ** 28)"), because("memory"));
  await assert.rejects(tool.execute("(function f() { f() })()"), because("stack"));
  await assert.rejects(tool.execute("await new Promise(() => {})"), because("unsettled"));
  await assert.rejects(tool.execute(`"${"x".repeat(300_000)}"`), because("source"));
  const args = "x".repeat(300_000);
  await assert.rejects(tool.execute("1", { args }), because("source"));
  const functions = { ["x".repeat(65)]: () => 1 };
  await assert.rejects(tool.execute("1", { functions }), because("function"));
});

test("functions of this process are called from the sandbox", how, async () => {
  const tool = code(there());
  const functions = {
    add: (a: unknown, b: unknown) => Number(a) + Number(b),
    later: async (value: unknown) => {
      await Promise.resolve();
      return { value };
    },
    fails: () => {
      throw new Error("not today");
    },
    strange: () => 1n,
    nothing: () => {},
    now: { call: (value: unknown) => `waited for ${String(value)}`, waits: true },
    read: { to: "@(tools/files)", type: "read" },
  };
  const run = async (source: string): Promise<unknown> =>
    (await tool.execute(source, { functions })).value;
  assert.equal(await run("await fns.add(1, 2)"), 3);
  assert.deepEqual(await run("await Promise.all([fns.later(1), fns.later('x')])"), [
    { value: 1 },
    { value: "x" },
  ]);
  assert.equal(await run("try { await fns.fails() } catch (error) { error.message }"), "not today");
  assert.match(
    String(await run("try { await fns.strange() } catch (error) { error.message }")),
    /BigInt/i,
  );
  assert.equal(await run("await fns.nothing()"), null);
  assert.equal(await run("fns.now(7)"), "waited for 7");
  assert.equal(await run("await fns.read({ path: 'note.txt' })"), "call back");
  const names = Object.keys(functions).sort();
  assert.deepEqual(await run("Object.keys(fns).sort()"), names);
});

test("calls under way have a limit, and an answer belongs to its call", how, async () => {
  const tool = code(there());
  const open: ((value: number) => void)[] = [];
  let both = (): void => {};
  const bothWait = new Promise<void>((resolve) => (both = resolve));
  const wait = (): Promise<number> =>
    new Promise((resolve) => {
      if (open.push(resolve) === 2) both();
    });
  const source = "const all = [fns.wait(), fns.wait(), fns.wait()];\n"
    + "(await Promise.allSettled(all)).map(({ status, value }) => value ?? status)";
  const running = tool.execute(source, { functions: { wait } });
  await bothWait;
  for (const call of ["0".repeat(32), "", "1"]) {
    assert.equal(await tool.actor.ask("answer", { call, value: "forged" }), false);
  }
  const twofold = tool.actor.ask("answer", { call: "1", value: 1, error: "and an error" });
  await assert.rejects(twofold, { code: "bad-request", message: /`value` or an `error`/ });
  open.forEach((resolve, n) => resolve(n));
  assert.deepEqual((await running).value, [0, 1, "rejected"]);
  const asked = tool.actor.ask("execute", { code: "1", calls: { x: { waits: false } } });
  await assert.rejects(asked, { code: "bad-request", message: /follow/ });
});

test("a signal ends an endless loop, and a run that waits for this process", how, async () => {
  const tool = code(there());
  const { cancelled: already } = await tool.usage();
  const endless = ["console.log('go'); for (;;);", "console.log('go'); await fns.never()"];
  const functions = { never: () => new Promise(() => {}) };
  for (const [n, source] of endless.entries()) {
    const cancel = new AbortController();
    const { signal } = cancel;
    // The output arrives while the code runs, or nothing would end it.
    const onOutput = (): void => cancel.abort();
    const run = tool.execute(source, { signal, functions, onOutput });
    await assert.rejects(run, { code: "cancelled" });
    await until(async () => (await tool.usage()).running === 0);
    assert.equal((await tool.usage()).cancelled, already + n + 1);
  }
  const aborted = AbortSignal.abort();
  await assert.rejects(tool.execute("1", { signal: aborted }), { code: "cancelled" });
  const throws = (): void => {
    throw new Error("no more lines");
  };
  const broken = tool.execute(endless[0] ?? "", { onOutput: throws });
  await assert.rejects(broken, { message: "no more lines" });
  await until(async () => (await tool.usage()).running === 0);
});

test("a realm is kept by its name, until it is forgotten", how, async () => {
  const tool = code(there());
  const realm = "notes";
  assert.equal((await tool.execute("let n = 1", { realm })).fresh, true);
  const next = await tool.execute("n += 1", { realm });
  assert.deepEqual([next.value, next.fresh], [2, false]);
  assert.equal((await tool.execute("typeof n")).value, "undefined");
  assert.equal(await tool.forget(realm), true);
  assert.equal(await tool.forget(realm), false);
  assert.equal((await tool.execute("typeof n", { realm })).value, "undefined");
});

test("programs are published, called, listed and removed", how, async () => {
  const tool = programs(there());
  const source = "state.n ??= 0;\nasync function handle(by: number) {\n"
    + "  const note = await fns.read({ path: 'note.txt' });\n"
    + "  return { n: (state.n += by), note };\n}";
  await tool.publish("counter", source, {
    language: "ts",
    input: { type: "integer" },
    functions: { read: { to: "@(tools/files)", type: "read" } },
  });
  assert.deepEqual(await tool.call("counter", 2), { n: 2, note: "call back" });
  assert.deepEqual(await tool.call("counter", 3), { n: 5, note: "call back" });
  await assert.rejects(tool.call("counter", "x"), { code: "bad-request", message: /schema/ });
  const [info] = await tool.list();
  assert.deepEqual(info, {
    name: "counter",
    state: "resident",
    calls: 3,
    failed: 1,
    restarts: 0,
  });
  await assert.rejects(tool.publish("broken", "1;\n2 2"), (error) => {
    assert.ok(error instanceof CodeError);
    assert.equal(error.thrown?.line, 2);
    return true;
  });
  await tool.publish("draft", "function handle() {}", { draft: true });
  await assert.rejects(tool.call("draft"), { code: "refused" });
  assert.equal(await tool.remove("draft"), true);
  assert.equal(await tool.remove("draft"), false);
  await assert.rejects(tool.call("draft"), { code: "unknown-target" });
});

test("a signal ends a program's call, and the next is handled", how, async () => {
  const tool = programs(there());
  const source = "function handle(wait) { while (wait); return 'done' }";
  await tool.publish("loop", source);
  const cancel = new AbortController();
  const called = tool.call("loop", true, { signal: cancel.signal, deadlineMs: 600_000 });
  cancel.abort();
  await assert.rejects(called, { code: "cancelled" });
  assert.equal(await tool.call("loop", false), "done");
});
