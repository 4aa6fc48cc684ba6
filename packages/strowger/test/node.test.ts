import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { connect, startNode, type Trouble } from "../src/index.js";
import { nodeOrSkip, patient } from "./binary.js";
import type { Program } from "./program.js";

const { program: binary, skip } = nodeOrSkip();
const how = { timeout: 60_000, skip };
const options = { ...patient, binary, args: ["--port", "0", "--conformance"] };

test("killing a node fails what is pending, and nothing hangs", how, async () => {
  await using node = await startNode(options);
  const actor = node.actor<Program>("conformance/echo");
  const items = actor.stream("numbers", { from: 0, to: null }, { window: 1 });
  assert.equal((await items.next()).value, 0);
  assert.equal((await items.next()).value, 1);
  const pending = [
    actor.ask("wait", { ms: 60_000 }, { deadlineMs: 60_000 }),
    actor.ask("echo", 1, { deadlineMs: 60_000 }),
  ].map((asked) => assert.rejects(asked, { code: "lost" }));
  // An answer to a later ask shows that the earlier ones have been sent.
  await node.actor<Program>("conformance/small").ask("echo", 1);
  process.kill(node.pid, "SIGKILL");
  await Promise.all(pending);
  // Items that arrived before can still be read.
  await assert.rejects(async () => {
    for await (const _ of items);
  }, { code: "lost" });
  assert.equal(await node.exited, "SIGKILL");
  const ended = { code: "unreachable", message: "the node ended with SIGKILL" };
  await assert.rejects(actor.ask("echo", 1, { deadlineMs: 60_000 }), ended);
  assert.equal(node.state, "closed");
});

test("a process whose node was killed can end", how, async () => {
  const file = fileURLToPath(new URL("orphan.js", import.meta.url));
  const run = promisify(execFile);
  // Shorter than the timeout of the test, which would not end the process.
  const limit = { timeout: 50_000, killSignal: "SIGKILL" } as const;
  const { stdout } = await run(process.execPath, [file, binary], limit);
  assert.equal(stdout.trim(), "SIGKILL");
});

test("a log callback that throws is a trouble, and the node goes on", how, async () => {
  const bug = new Error("a bug of the callback");
  const troubles: Trouble[] = [];
  const log = (): never => {
    throw bug;
  };
  // The node writes to its log as it starts, before there is anything to listen to.
  await using node = await startNode({ ...options, log });
  node.troubles.listen((trouble) => troubles.push(trouble));
  assert.equal(await node.actor<Program>("conformance/echo").ask("echo", 1), 1);
  await node.stop();
  assert.ok(troubles.every(({ source, error }) => source === "listener" && error === bug));
});

test("a client comes back when its node does", how, async () => {
  const folder = mkdtempSync(join(tmpdir(), "strowger-"));
  try {
    const socket = join(folder, "gateway");
    await using first = await startNode({ ...options, socket });
    await using client = await connect(socket, patient.connect);
    const actor = client.actor<Program>("conformance/echo");
    assert.equal(await actor.ask("add", 5), 5);
    await first.stop();
    const waiting = actor.ask("add", 7, { deadlineMs: 60_000 });
    await using second = await startNode({ ...options, socket });
    assert.equal(await waiting, 7);
    assert.notEqual(second.pid, first.pid);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a component of a node answers as every actor does", how, async () => {
  type Component = {
    call: { payload: string; reply: string };
    message: { payload: string };
  };
  const folder = mkdtempSync(join(tmpdir(), "strowger-"));
  try {
    const fixture = new URL("../../../../fixtures/components/counter.wasm", import.meta.url);
    const file = JSON.stringify(fileURLToPath(fixture));
    const limits = '[limits]\ndeadline = "1s"\n[state]\nmode = "snapshot"';
    const manifest = `[component]\nname = "counter"\nfile = ${file}\n${limits}\n`;
    writeFileSync(join(folder, "counter.toml"), manifest);
    const config = join(folder, "node.toml");
    writeFileSync(config, '[[component]]\nmanifest = "counter.toml"\nexpose = true\n');
    await using node = await startNode({ ...options, args: ["--port", "0", "--config", config] });
    const counter = node.actor<Component>("components/counter");
    assert.equal(await counter.ask("call", "x"), "1");
    await counter.tell("message", "x");
    await assert.rejects(counter.ask("call", "panic"), { code: "failed", message: /aborted/ });
    assert.equal(await counter.ask("call", "x"), "3");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a node that is stopped ends in order", how, async () => {
  await using node = await startNode(options);
  assert.equal(await node.stop(), 0);
  assert.equal(await node.exited, 0);
  await assert.rejects(node.actor("conformance/echo").ask("echo", 1), { code: "cancelled" });
});
