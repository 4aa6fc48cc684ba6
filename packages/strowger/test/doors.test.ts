import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { connect, type StartedNode, startNode } from "../src/index.js";
import { nodeOrSkip, patient } from "./binary.js";
import type { Program } from "./program.js";

const { program: binary, skip } = nodeOrSkip();
const how = { timeout: 60_000, skip };
const token = "correct-horse-battery-staple-0123456789";

let node: StartedNode | undefined;
let folder = "";
before(async () => {
  if (skip !== false) return;
  folder = mkdtempSync(join(tmpdir(), "strowger-"));
  const file = join(folder, "token");
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const config = join(folder, "node.toml");
  writeFileSync(config, `[gateway]\ntcp = "127.0.0.1:0"\ntoken_file = ${JSON.stringify(file)}\n`);
  const args = ["--config", config, "--port", "0", "--conformance"];
  node = await startNode({ ...patient, binary, args });
});
after(async () => {
  await node?.stop();
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
});

const place = (): string => `tcp://${String(node?.announcement["tcp"])}`;

test("actors are asked, told and read over TCP", how, async () => {
  await using client = await connect(place(), { ...patient.connect, token });
  const actor = client.actor<Program>("conformance/echo");
  const long = "long ".repeat(40_000);
  assert.equal(await actor.ask("echo", long), long);
  const asked = Array.from({ length: 100 }, (_, n) => actor.ask("echo", n));
  assert.deepEqual(await Promise.all(asked), Array.from({ length: 100 }, (_, n) => n));
  await actor.tell("add", 1);
  const got: number[] = [];
  for await (const n of actor.stream("numbers", { from: 0, to: 500 }, { window: 3 })) got.push(n);
  assert.deepEqual(got, Array.from({ length: 500 }, (_, n) => n));
});

test("TCP is refused without the token", how, async () => {
  await assert.rejects(connect(place()), { code: "refused" });
  await assert.rejects(connect(place(), { token: "guess" }), { code: "refused" });
});
