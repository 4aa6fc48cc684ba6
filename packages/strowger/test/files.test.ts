import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { files, type FilesProtocol } from "../src/files/index.js";
import { ActorSystem, MessageError, type RemoteNode, startNode } from "../src/index.js";
import { nodeOrSkip, patient } from "./binary.js";
import { until } from "./until.js";

const { program: binary, skip } = nodeOrSkip();
const how = { timeout: 60_000, skip };

/** Runs a test with a node that grants access to a folder with a note in it. */
async function granted(
  run: (node: RemoteNode, data: string, outside: string) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "strowger-"));
  try {
    const data = join(folder, "data");
    mkdirSync(data);
    writeFileSync(join(data, "note.txt"), "call back");
    writeFileSync(join(folder, "secret"), "no");
    const config = join(folder, "node.toml");
    writeFileSync(config, '[[tools.files]]\nroot = "data"\npage = 3\n');
    const args = ["--port", "0", "--config", config];
    await using node = await startNode({ ...patient, binary, args });
    await run(node, data, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = [];
  for await (const item of items) got.push(item);
  return got;
}

test("files of a node are read, written, found and refused", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    assert.equal(await tools.readText("note.txt"), "call back");
    await tools.write("octets", new Uint8Array([0, 255, 10]));
    assert.deepEqual([...readFileSync(join(data, "octets"))], [0, 255, 10]);
    assert.deepEqual([...(await tools.read("octets"))], [0, 255, 10]);
    await assert.rejects(tools.readText("octets"), { code: "bad-request" });
    await tools.append("note.txt", ", please");
    const edited = await tools.edit("note.txt", [{ old: "please", new: "today" }]);
    assert.equal(edited.places, 1);
    await tools.make("a/b");
    for (const name of ["1", "2", "3", "4"]) await tools.write(`a/b/${name}`, name);
    // The list takes several pages.
    assert.deepEqual((await all(tools.list("a/b"))).map(({ name }) => name), ["1", "2", "3", "4"]);
    // A tree is a single answer with a limited number of entries, and says if it was cut.
    const below = (await tools.tree("a")).entries?.[0];
    assert.deepEqual([below?.name, below?.entries?.length, below?.cut], ["b", 2, true]);
    const found = await tools.search({ text: "today" });
    assert.deepEqual(found.matches, [{ path: "note.txt", line: 1, text: "call back, today" }]);
    await tools.rename("a/b/1", "a/one");
    await tools.delete("a/b", { recursive: true });
    assert.deepEqual((await all(tools.list("a"))).map(({ name }) => name), ["one"]);
    assert.equal((await tools.stat("note.txt")).size, 16);
    await assert.rejects(tools.read("../secret"), { code: "refused", message: /rule: outside/ });
    await assert.rejects(tools.read("nothing"), { code: "failed", message: /no such file/ });
    assert.equal((await tools.usage()).verbs["read"]?.refused, 1);
  }));

test("names that are not UTF-8 are listed, paged over, found and reached", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    await tools.delete("note.txt");
    const below = Buffer.from(`${data}/`);
    const name = (n: number) => Buffer.concat([below, Buffer.from([0xff, 48 + n])]);
    for (let n = 1; n <= 9; n += 1) writeFileSync(name(n), `needle ${n}\n`);
    // The list takes three pages, each of which continues after a name that is not UTF-8.
    const listed = await all(tools.list());
    assert.equal(new Set(listed.map(({ uri }) => uri)).size, 9);
    for (const [n, { uri = "" }] of listed.entries()) {
      assert.match(uri, /^file:\/\/\/.*\/%FF[1-9]$/);
      assert.equal(await tools.readText(uri), `needle ${n + 1}\n`);
    }
    const found = await tools.search({ text: "needle 9" });
    assert.equal(found.matches[0]?.uri, listed[8]?.uri);
    writeFileSync(name(1), "no\0text");
    const { skipped } = await tools.search({ text: "nothing" });
    assert.equal(skipped?.binary, 1);
    assert.deepEqual([skipped?.paths[0]?.uri, skipped?.paths[0]?.why], [listed[0]?.uri, "binary"]);
  }));

test("lines, orders and what is left out go the way to the actor", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    writeFileSync(join(data, "log"), "1\n2\n3\n4\n");
    assert.equal(await tools.readLines("log", { tail: 1 }), "4\n");
    assert.equal(await tools.readLines("log", { from: 2, head: 2 }), "2\n3\n");
    const sizes = await all(tools.list("", { order: "size" }));
    assert.deepEqual(sizes.map(({ name }) => name), ["note.txt", "log"]);
    const tree = await tools.tree("", { exclude: ["*.txt"] });
    assert.deepEqual(tree.entries?.map(({ name }) => name), ["log"]);
    const found = await tools.search({ text: "^[1-4]$" }, { most: 1 });
    assert.deepEqual([found.cut, found.limit], ["matches", 1]);
    assert.match(found.remedy ?? "", /`most`/);
  }));

test("a large file is read piece by piece, as far as somebody reads", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    const octets = new Uint8Array(3_000_001).map((_, n) => n % 251);
    writeFileSync(join(data, "large"), octets);
    assert.deepEqual(await tools.read("large"), octets);
    const before = (await tools.usage()).verbs["read"]?.calls ?? 0;
    let got = 0;
    for await (const piece of tools.chunks("large", { chunk: 100_000, from: 1_000_000 })) {
      assert.deepEqual(piece, octets.subarray(1_000_000 + got, 1_000_000 + got + 100_000));
      got += piece.length;
      if (got === 500_000) break;
    }
    const calls = ((await tools.usage()).verbs["read"]?.calls ?? 0) - before;
    assert.ok(calls < 12, `${calls} pieces were asked for`);
  }));

test("pieces that come in their own time become a file, whole or not at all", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    async function* pieces(fail: boolean): AsyncGenerator<string> {
      yield "one ";
      assert.ok(!readdirSync(data).includes("streamed"), "it is not seen before its end");
      yield "two";
      if (fail) throw new Error("the producer died");
    }
    await assert.rejects(tools.write("streamed", pieces(true)), { message: "the producer died" });
    assert.deepEqual(readdirSync(data), ["note.txt"]);
    await tools.write("streamed", pieces(false));
    assert.equal(readFileSync(join(data, "streamed"), "utf8"), "one two");
    await tools.delete("streamed");
    await tools.write("streamed", pieces(false), { mode: "durable" });
    assert.equal(readFileSync(join(data, "streamed"), "utf8"), "one two");
  }));

test("pieces that become a file keep its permissions, and follow a link", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    async function* pieces(): AsyncGenerator<string | Uint8Array> {
      yield "\ud83d\ude00 ";
      yield new Uint8Array([0xff]);
    }
    const file = join(data, "private");
    writeFileSync(file, "old", { mode: 0o600 });
    symlinkSync("private", join(data, "link"));
    await tools.write("link", pieces());
    assert.equal(lstatSync(join(data, "link")).isSymbolicLink(), true);
    assert.deepEqual([...readFileSync(file)], [0xf0, 0x9f, 0x98, 0x80, 0x20, 0xff]);
    assert.equal(lstatSync(file).mode & 0o777, 0o600);
    await tools.write("n".repeat(255), pieces());
    assert.equal((await tools.stat("n".repeat(255))).size, 6);
  }));

test("many pieces become a file by the rules of one write", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    const piece = new Uint8Array(100_000).fill(7);
    let part = "";
    async function* pieces(): AsyncGenerator<string | Uint8Array> {
      for (let n = 0; n < 5; n += 1) yield piece;
      part = readdirSync(data).find((name) => name.startsWith(".")) ?? "";
      assert.match(part, /^\.strowger-\d+-\d+$/);
      yield "end";
    }
    const long = "n".repeat(255);
    await tools.write(long, pieces());
    assert.equal(readFileSync(join(data, long)).length, 500_003);
    const file = join(data, "private");
    writeFileSync(file, "old", { mode: 0o600 });
    symlinkSync("private", join(data, "link"));
    // Only root gives files away.
    if (process.getuid?.() === 0) chownSync(file, 1234, 4321);
    const before = lstatSync(file);
    await tools.write("link", pieces(), { mode: "durable" });
    assert.equal(lstatSync(join(data, "link")).isSymbolicLink(), true);
    const after = lstatSync(file);
    assert.deepEqual(
      [after.size, after.mode, after.uid, after.gid],
      [500_003, before.mode, before.uid, before.gid],
    );
    writeFileSync(join(data, "fixed"), "old", { mode: 0o444 });
    const refused = { code: "refused", message: /rule: mode/ };
    await assert.rejects(tools.write("fixed", pieces()), refused);
    const names = readdirSync(data).sort();
    assert.deepEqual(names, ["fixed", "link", long, "note.txt", "private"]);
  }));

test("a writer that is killed changes nothing, and leaves nothing for long", how, () =>
  granted(async (node, data, folder) => {
    const file = fileURLToPath(new URL("writer.js", import.meta.url));
    const run = promisify(execFile);
    const killed = run(process.execPath, [file, binary, join(folder, "node.toml")]);
    await assert.rejects(killed, { signal: "SIGKILL" });
    assert.equal(readFileSync(join(data, "note.txt"), "utf8"), "call back");
    const left = readdirSync(data).filter((name) => name.startsWith(".strowger-"));
    assert.equal(left.length, 1);
    const part = join(data, left[0] ?? "");
    const longAgo = Date.now() / 1000 - 7200;
    utimesSync(part, longAgo, longAgo);
    const tools = files(node);
    await tools.write("note.txt", "call again", { mode: "atomic" });
    await until(async () => (await tools.usage()).looked > 0 && !existsSync(part));
    assert.deepEqual(readdirSync(data), ["note.txt"]);
  }));

test("pieces that are too long for one message are written one by one", async () => {
  const system = new ActorSystem();
  const seen: string[] = [];
  type Writes = Pick<FilesProtocol, "write" | "append" | "begin" | "commit">;
  system.spawn<Writes>("tools/files", () => ({
    handle: {
      write: ({ path, mode = "inplace" }) => {
        seen.push(`write ${mode} ${path}`);
        throw new MessageError("bad-request", "longer than the node takes");
      },
      append: ({ path }) => void seen.push(`append ${path}`),
      begin: ({ path }) => {
        seen.push(`begin ${path}`);
        return { part: "a/part" };
      },
      commit: ({ part, path, length, durable = false }) =>
        void seen.push(`commit ${part} ${path} ${length} ${durable}`),
    },
  }));
  async function* pieces(): AsyncGenerator<string> {
    yield "1";
    yield "2";
  }
  await files(system).write("a/b", pieces());
  const appended = ["append a/part", "append a/part"];
  assert.deepEqual(seen, [
    "write atomic a/b", "begin a/b", ...appended, "commit a/part a/b 2 false",
  ]);
  await system.shutdown();
});

test("a list that does not go on is an error, not a loop", async () => {
  const system = new ActorSystem();
  system.spawn<Pick<FilesProtocol, "list">>("tools/files", () => ({
    handle: { list: () => ({ entries: [{ name: "\ufffd", kind: "file" }], more: true }) },
  }));
  await assert.rejects(all(files(system).list()), { code: "protocol" });
  await system.shutdown();
});

test("a signal cancels, and nothing is left half done", how, () =>
  granted(async (node, data) => {
    const tools = files(node);
    const cancel = new AbortController();
    async function* endless(): AsyncGenerator<string> {
      for (let n = 0; ; n += 1) {
        if (n === 3) cancel.abort();
        yield "more";
      }
    }
    const written = tools.write("streamed", endless(), { signal: cancel.signal });
    await assert.rejects(written, { code: "cancelled" });
    assert.deepEqual(readdirSync(data), ["note.txt"]);
    const read = tools.read("note.txt", { signal: cancel.signal });
    await assert.rejects(read, { code: "cancelled" });
  }));

test("a stand-in of this process is spoken to in the same way", async () => {
  const system = new ActorSystem();
  type Reads = Pick<FilesProtocol, "read">;
  const octets = new TextEncoder().encode("here");
  system.spawn<Reads>("tools/files", () => ({ handle: { read: () => octets } }));
  assert.equal(await files(system).readText("anything"), "here");
  assert.throws(() => files(system, "docs"), { code: "unknown-target" });
  await system.shutdown();
});
