import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { connect, type RemoteNode, type StartedNode, startNode } from "../src/index.js";
import { binary, patient } from "./binary.js";
import { assertComplete, suite, type World } from "./conformance.js";
import type { Program } from "./program.js";

const how = { timeout: 60_000 };
const path = "conformance/echo";

function start(socket: string): Promise<StartedNode> {
  const program = binary();
  // Never skipped: a case that was not run has not passed.
  assert.ok(program !== undefined, "no node: set STROWGER_BIN, or build one with `cargo build`");
  return startNode({ ...patient, binary: program, socket, args: ["--port", "0", "--conformance"] });
}

function worldOf(node: RemoteNode): World {
  return {
    actor: node.actor<Program>(path),
    small: node.actor<Program>("conformance/small"),
    path,
    subscribe: () => node.topic("conformance").subscribe(),
    untyped: (at) => node.actor(at),
  };
}

let folder = "";
let node: StartedNode | undefined;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "strowger-"));
  node = await start(join(folder, "gateway"));
});
after(async () => {
  await node?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ran: string[] = [];
for (const { name, run } of suite) {
  test(`over a client: ${name}`, how, async () => {
    assert.ok(node !== undefined);
    await run(worldOf(node));
    ran.push(name);
  });
}
test("over a client: no case was left out", () => assertComplete(ran, "over a client"));

const survived: string[] = [];
for (const { name, run } of suite) {
  test(`over a client whose node is killed: ${name}`, how, async () => {
    const socket = join(folder, "killed");
    const options = { ...patient.connect, backoff: { initialMs: 1, maxMs: 20 } } as const;
    await using first = await start(socket);
    await using client = await connect(socket, { ...options, whileLost: "fail" });
    const world = worldOf(client);
    const items = world.actor.stream("numbers", { from: 0, to: null }, { window: 1 });
    assert.equal((await items.next()).value, 0);
    // The case cannot get past its first answer, because the node is stopped.
    process.kill(first.pid, "SIGSTOP");
    const asked = assert.rejects(world.actor.ask("echo", 1), { code: "lost" });
    const failed = assert.rejects(run(world));
    process.kill(first.pid, "SIGKILL");
    await Promise.all([asked, failed]);
    await assert.rejects(async () => {
      for await (const _ of items);
    }, { code: "lost" });
    assert.equal(await first.exited, "SIGKILL");

    await using second = await start(socket);
    await client.opened();
    await run(world);
    assert.notEqual(second.pid, first.pid);
    survived.push(name);
  });
}
test("over a client whose node is killed: no case was left out", () =>
  assertComplete(survived, "over a client whose node is killed"));
