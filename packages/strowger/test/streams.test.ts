import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { type RemoteNode, startNode } from "../src/index.js";
import { type Piece, streams } from "../src/streams/index.js";
import { nodeOrSkip, patient } from "./binary.js";
import { until } from "./until.js";

const { program: binary, skip } = nodeOrSkip();
const how = { timeout: 60_000, skip };

/** Runs a test with a node that has streams enabled. */
async function streaming(more: string, run: (node: RemoteNode) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "strowger-"));
  try {
    const config = join(folder, "node.toml");
    writeFileSync(config, `[tools.streams]\nenabled = true\n${more}`);
    const args = ["--port", "0", "--config", config];
    await using node = await startNode({ ...patient, binary, args });
    await run(node);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns all pieces, and the error at the end if there was one. */
async function read(pieces: AsyncIterable<Piece>): Promise<{ got: Piece[]; why: unknown }> {
  const got: Piece[] = [];
  try {
    for await (const piece of pieces) got.push(piece);
    return { got, why: undefined };
  } catch (why) {
    return { got, why };
  }
}

test("pieces reach every reader, texts as texts and octets as octets", how, () =>
  streaming("", async (node) => {
    const tools = streams(node);
    await tools.open("log");
    const readers = [tools.follow("log"), tools.follow("log")].map(read);
    await until(async () => (await tools.list())[0]?.readers === 2);
    assert.equal(await tools.put("log", "one"), 2);
    assert.equal(await tools.put("log", new Uint8Array([0, 255])), 2);
    await tools.end("log");
    for (const { got, why } of await Promise.all(readers)) {
      assert.deepEqual(got, ["one", new Uint8Array([0, 255])]);
      assert.equal(why, undefined);
    }
    await assert.rejects(tools.put("log", "late"), { code: "failed", message: /no stream/ });
  }));

test("a producer that fails, or is cancelled, ends its readers with the error", how, () =>
  streaming("", async (node) => {
    const tools = streams(node);
    let follow = (): void => {};
    const followed = new Promise<void>((resolve) => (follow = resolve));
    async function* dies(): AsyncGenerator<string> {
      yield "half";
      await followed;
      throw new Error("out of paper");
    }
    const sent = tools.send("log", dies(), { replay: 4 });
    await until(async () => (await tools.list())[0]?.pieces === 1);
    const seen = read(tools.follow("log"));
    await until(async () => (await tools.list())[0]?.readers === 1);
    follow();
    await assert.rejects(sent, { message: "out of paper" });
    const { got, why } = await seen;
    assert.deepEqual(got, ["half"]);
    assert.match(String(why), /out of paper/);

    const cancel = new AbortController();
    async function* endless(): AsyncGenerator<string> {
      for (;;) yield "more";
    }
    const endlessly = tools.send("endless", endless(), { signal: cancel.signal });
    await until(async () => (await tools.list()).length === 1);
    const reader = read(tools.follow("endless", { window: 1 }));
    await until(async () => (await tools.list())[0]?.readers === 1);
    cancel.abort();
    await assert.rejects(endlessly, { code: "cancelled" });
    assert.match(String((await reader).why), /cancel/);
    assert.deepEqual(await tools.list(), []);
  }));

test("a reader that leaves, or never reads, keeps nobody", how, () =>
  streaming('stall = "200ms"\nwindow = 1\n', async (node) => {
    const tools = streams(node);
    await tools.open("log", { replay: 0 });
    // The reader takes the first piece and never asks for another.
    const never = tools.follow("log", { window: 1 });
    const first = never.next();
    const leaves = tools.follow("log");
    const left = leaves.next();
    const good = read(tools.follow("log"));
    await until(async () => (await tools.list())[0]?.readers === 3);
    assert.equal(await tools.put("log", "0"), 3);
    assert.equal((await first).value, "0");
    assert.equal((await left).value, "0");
    await leaves.return?.();
    for (let n = 1; n < 50; n += 1) await tools.put("log", String(n));
    await tools.end("log");
    assert.equal((await good).got.length, 50);
    const { why } = await read(never);
    assert.match(String(why), /too slow/);
  }));
