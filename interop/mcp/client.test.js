// Tests with the official client of the Model Context Protocol: over standard input, over HTTP, and
// beside a running node. Each structured answer is checked against the schema of its tool.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const binary = process.env["STROWGER_BIN"] ?? "strowger";
const how = { timeout: 60_000 };
const LONG = { timeout: 50_000 };

/** Time in which a node is ready, if it compiles the engine that runs code. */
const READY = 280_000;

/** Time in which a node ends in order. */
const GRACE = 20_000;

/**
 * What ends the programs that run. A test that has taken too long goes on behind its failure, and
 * so do its programs until they are ended here.
 */
const running = new Set();
after(() => Promise.allSettled([...running].map((end) => end())));

/** Runs with something that is ended whatever happens, at the latest after all tests. */
async function ending(end, run) {
  running.add(end);
  try {
    return await run();
  } finally {
    running.delete(end);
    await end();
  }
}

/** Runs a test with a folder: `data` with a note and a picture in it, and a secret beside it. */
async function inFolder(run) {
  const folder = mkdtempSync(join(tmpdir(), "strowger-"));
  const data = join(folder, "data");
  mkdirSync(join(data, "src"), { recursive: true });
  writeFileSync(join(data, "note.txt"), "call back\ntoday\n");
  writeFileSync(join(data, "src/main.rs"), "fn main() {}\n");
  writeFileSync(join(data, "dot.png"), Buffer.from([137, 80, 78, 71]));
  writeFileSync(join(folder, "secret"), "no");
  try {
    await run({ folder, data });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Closes a client, and waits for the end of the program that its transport has started. */
async function closed(client, transport) {
  await client.close();
  // A failed connection has been closed with its error already.
  await Promise.race([transport.ended, sleep(GRACE, undefined, { ref: false })]);
}

/** Runs with a client that has shaken hands and knows the tools, and closes it at the end. */
function withClient(transport, run) {
  const client = new Client({ name: "interop", version: "1.0.0" });
  return ending(() => closed(client, transport), async () => {
    await client.connect(transport, LONG);
    const { tools } = await client.listTools(undefined, LONG);
    const call = async (name, args, options) =>
      client.callTool({ name, arguments: args }, undefined, { ...LONG, ...options });
    await run({ tools, names: tools.map(({ name }) => name), call });
  });
}

/** Waits until something holds; what does not hold in time is an error. */
async function until(holds) {
  const late = performance.now() + LONG.timeout;
  while (!await holds()) assert.ok(performance.now() < late, "it never holds");
}

/** The last text of an answer. */
const text = ({ content }) => content.at(-1).text;

/** The same as JSON. */
const value = (answer) => JSON.parse(text(answer));

/** A program on whose input and output agents speak, and its end. */
function onInput(args) {
  const transport = new StdioClientTransport({ command: binary, args: ["mcp", ...args] });
  transport.ended = new Promise((resolve) => (transport.onclose = resolve));
  return transport;
}

/** A node that runs until the test is over, or this process: it ends with its input. */
async function withNode(folder, config, run) {
  const file = join(folder, "node.toml");
  writeFileSync(file, config);
  const control = join(folder, "control.sock");
  const doors = ["--port", "0", "--config", file, "--control", control];
  const args = ["run", "--json", "--with-parent", ...doors];
  const node = spawn(binary, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => {
    node.once("error", resolve);
    node.once("exit", resolve);
  });
  const end = async () => {
    node.kill("SIGTERM");
    const late = setTimeout(() => node.kill("SIGKILL"), GRACE);
    await exited;
    clearTimeout(late);
  };
  await ending(end, async () => {
    let late;
    const line = await new Promise((resolve, reject) => {
      createInterface(node.stdout).once("line", resolve);
      void exited.then((how) => reject(new Error(`the node ended with ${how}`)));
      late = setTimeout(() => reject(new Error("the node says nothing")), READY);
    }).finally(() => clearTimeout(late));
    await run({ ...JSON.parse(line), control });
  });
}

/**
 * How often progress is told of a call that takes a while. What comes in one piece with the answer
 * the client does not tell any more.
 */
async function toldInOrder(call) {
  const told = [];
  const paths = Array.from({ length: 3000 }, () => "note.txt");
  const onprogress = ({ progress, total }) => {
    assert.equal(total, paths.length);
    told.push(progress);
  };
  await call("read_multiple_files", { paths }, { onprogress });
  assert.deepEqual(told, [...told].sort((a, b) => a - b));
  return told.length;
}

/** Where nodes keep the engine that runs code, so that it is compiled once. */
function engine() {
  const folder = join(import.meta.dirname, "node_modules/.engine");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

// Compiles the engine once, before calls with a deadline need it.
before(
  () =>
    inFolder(({ folder }) => {
      const cache = `[components]\ncache = ${JSON.stringify(engine())}\n`;
      return withNode(folder, `${cache}[tools.code]\nenabled = true\n`, async () => {});
    }),
  { timeout: 300_000 },
);

/** Code has what it is given, tells its output while it runs, and ends when its call does. */
async function runsCode(call) {
  const code = "const { content } = await fns.read_text_file({ path: args.path });\n"
    + "const lines: string[] = content.trim().split('\\n'); console.warn('read'); lines.length";
  const functions = ["read_text_file"];
  const wanted = { code, language: "ts", args: { path: "note.txt" }, functions };
  const ran = await call("code_execute", wanted);
  assert.deepEqual(ran.content.map((block) => block.text), ["[warn] read", "2"]);
  assert.deepEqual(ran.structuredContent, { lines: 1, fresh: true });

  const outside = await call("code_execute", { ...wanted, args: { path: "../secret" } });
  assert.equal(outside.isError, true);
  assert.match(text(outside), /rule: outside/);
  const { isError, structuredContent } = await call("code_execute", { code: "1;\nnull.x" });
  assert.equal(isError, true);
  const { kind, name, line } = structuredContent.error;
  assert.deepEqual({ kind, name, line }, { kind: "thrown", name: "TypeError", line: 2 });
  const limit = await call("code_execute", { code: "for (;;);", time_ms: 20 });
  assert.deepEqual(limit.structuredContent.error, { kind: "time", most: 20 });

  const figures = async () => value(await call("inspect", { path: "/tools/code" })).details.tool;
  const { cancelled } = await figures();
  const cancel = new AbortController();
  const told = [];
  const onprogress = ({ message }) => {
    told.push(message);
    cancel.abort("enough");
  };
  const endless = { code: "console.log('round and round'); for (;;);" };
  const running = call("code_execute", endless, { onprogress, signal: cancel.signal });
  await assert.rejects(running, /enough|abort/i);
  assert.deepEqual(told, ["round and round"]);
  await until(async () => (await figures()).running === 0);
  assert.equal((await figures()).cancelled, cancelled + 1);
}

/** As many calls as may be under way are, in one session, and each gets its own answer. */
async function answersAllAtOnce(call) {
  const CALLS = 64;
  const numbers = Array.from({ length: CALLS }, (_, number) => number);
  for (let round = 0; round < 3; round++) {
    await Promise.all(
      numbers.map(async (number) => {
        const sequence = number.toString(16).padStart(6, "0");
        const hex = `2001000c${sequence}00006000040a0b0c0d`;
        const answer = await call("pfcp_decode", { hex });
        assert.notEqual(answer.isError, true, `call ${number}`);
        assert.equal(value(answer).messages[0].sequence, number);
      }),
    );
  }
}

/** Programs are published, called, listed and removed. */
async function runsPrograms(call) {
  const code = "state.n ??= 0; function handle(by) { return state.n += by }";
  const input = { type: "integer" };
  const published = await call("program_publish", { name: "counter", code, input });
  assert.deepEqual(published.structuredContent, { address: "@(programs/counter)" });
  for (const output of [2, 4]) {
    const called = await call("program_call", { name: "counter", input: 2 });
    assert.deepEqual(value(called), { output });
  }
  const wrong = await call("program_call", { name: "counter", input: "two" });
  assert.match(wrong.content[0].text, /does not match its schema/);
  const listed = await call("program_list", {});
  const [{ name, state, calls }] = value(listed).programs;
  assert.deepEqual({ name, state, calls }, { name: "counter", state: "resident", calls: 3 });
  const removed = await call("program_remove", { name: "counter" });
  assert.deepEqual(removed.structuredContent, { removed: true });
}

const LOOKING = [
  "continue_answer",
  "directory_tree",
  "get_file_info",
  "list_allowed_directories",
  "list_directory",
  "list_directory_with_sizes",
  "pfcp_decode",
  "read_file",
  "read_media_file",
  "read_multiple_files",
  "read_text_file",
  "search_files",
  "search_text",
];
const OF_STREAMS = [
  "stream_end",
  "stream_list",
  "stream_open",
  "stream_read",
  "stream_to_file",
  "stream_write",
];
const OF_CODE = [
  "code_execute",
  "program_call",
  "program_list",
  "program_publish",
  "program_remove",
];
const OF_NODE = ["actor_tree", "inspect", ...OF_STREAMS, ...OF_CODE];
const CHANGING = [
  "append_file",
  "create_directory",
  "delete_file",
  "edit_file",
  "move_file",
  "write_file",
];

/** The limit on the text of an answer, in bytes. */
const LIMIT = 81_920;

/** Follows an answer to its end, as its notes say. */
async function whole(call, name, args) {
  let joined = "";
  for (let part = 1; ; part += 1) {
    const { content } = await call(name, args);
    const texts = content.map((block) => block.text);
    assert.ok(Buffer.byteLength(texts.join("")) <= LIMIT, name);
    const note = texts.find((text) => /^\(.* call (again|continue_answer) with /.test(text));
    joined += texts.filter((text) => text !== note).join("");
    if (note === undefined) {
      assert.ok(part > 2, `${name}: ${part} parts`);
      return joined;
    }
    const given = [...note.matchAll(/(answer|offset)=(\d+)/g)];
    const next = Object.fromEntries(given.map(([, key, number]) => [key, Number(number)]));
    [name, args] = "answer" in next ? ["continue_answer", next] : [name, { ...args, ...next }];
  }
}

/** Reads a long file and a long diff. */
async function continues(data, call) {
  const lines = Array.from({ length: 20_000 }, (_, line) => `line ${line}\n`).join("");
  writeFileSync(join(data, "long.txt"), lines);
  assert.equal(await whole(call, "read_text_file", { path: "long.txt" }), lines);
  const edits = [{ oldText: "line", newText: "row", all: true }];
  const diff = await whole(call, "edit_file", { path: "long.txt", edits, dryRun: true });
  assert.equal(diff.match(/^\+row \d+$/gm).length, 20_000);
  rmSync(join(data, "long.txt"));
}

test("an agent that starts the program reaches files below its root", how, () =>
  inFolder(async ({ data }) => {
    await withClient(onInput(["--root", data]), async ({ tools, names, call }) => {
      assert.deepEqual(names, [...LOOKING, ...CHANGING].sort());
      for (const tool of tools) {
        assert.equal(tool.inputSchema.type, "object", tool.name);
        assert.equal(tool.inputSchema.additionalProperties, false, tool.name);
        assert.equal(tool.annotations.readOnlyHint, LOOKING.includes(tool.name), tool.name);
      }
      const read = await call("read_text_file", { path: "note.txt", head: 1 });
      assert.equal(read.content[0].text, "call back\n");
      assert.equal(read.structuredContent, undefined, "a file is sent once");
      const absolute = await call("read_file", { path: join(data, "note.txt"), tail: 1 });
      assert.equal(absolute.content[0].text, "today\n");
      await continues(data, call);
      const media = await call("read_media_file", { path: "dot.png" });
      const image = { type: "image", data: "iVBORw==", mimeType: "image/png" };
      assert.deepEqual(media.content[0], image);

      await call("write_file", { path: "new.txt", content: "one\ntwo\n" });
      await call("append_file", { path: "new.txt", content: "three\n" });
      const edits = [{ oldText: "two", newText: "2" }];
      const dry = await call("edit_file", { path: "new.txt", edits, dryRun: true });
      assert.match(text(dry), /-two\n\+2/);
      assert.deepEqual(dry.structuredContent, { places: 1 });
      await call("edit_file", { path: "new.txt", edits });
      assert.equal(readFileSync(join(data, "new.txt"), "utf8"), "one\n2\nthree\n");
      await call("create_directory", { path: "a/b" });
      await call("move_file", { source: "new.txt", destination: "a/b/new.txt" });
      const listed = await call("list_directory_with_sizes", { path: "a/b" });
      assert.match(text(listed), /^\[FILE\] new\.txt 12 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.deepEqual(listed.structuredContent, { count: 1, more: false });
      const tree = await call("directory_tree", { path: "" });
      assert.deepEqual(value(tree).tree.entries.map(({ name }) => name), [
        "a",
        "dot.png",
        "note.txt",
        "src",
      ]);
      const found = await call("search_files", { path: "", pattern: "**/*.rs" });
      assert.equal(text(found), "src/main.rs");
      const lines = await call("search_text", { path: "", pattern: "^to" });
      assert.match(text(lines), /^note\.txt:2: today/);
      assert.equal(lines.structuredContent.count, 1);
      const info = await call("get_file_info", { path: "src" });
      assert.equal(info.structuredContent.kind, "directory");
      await call("delete_file", { path: "a", recursive: true });
      const roots = await call("list_allowed_directories", {});
      assert.equal(text(roots), `Allowed directories:\n${data} (files)`);
    });
  }));

test("refusals name the rule that forbids the call", how, () =>
  inFolder(async ({ data, folder }) => {
    await withClient(onInput(["--root", data]), async ({ call }) => {
      for (const [path, rule] of [
        ["../secret", "outside"],
        ["src/../../secret", "outside"],
        [join(folder, "secret"), "absolute"],
        [`${data}-secret`, "absolute"],
        ["note.txt\0", "name"],
      ]) {
        const refused = await call("read_text_file", { path });
        assert.equal(refused.isError, true, path);
        assert.ok(refused.content[0].text.includes(`(rule: ${rule})`), refused.content[0].text);
      }
      const unknown = await call("read_text_file", { path: "note.txt", follow: true });
      assert.equal(unknown.isError, true);
      assert.match(unknown.content[0].text, /unknown field `follow`/);
      const missing = await call("write_file", { path: "x" });
      assert.match(missing.content[0].text, /missing field `content`/);
      await assert.rejects(call("format_disk", {}), /unknown tool "format_disk"/);
      const media = await call("read_text_file", { path: "dot.png" });
      assert.match(media.content[0].text, /read_media_file/);
    });
  }));

test("a read-only root has no tools that write, and several roots have names", how, () =>
  inFolder(async ({ data, folder }) => {
    mkdirSync(join(folder, "docs"));
    writeFileSync(join(folder, "docs/guide.md"), "read me");
    const roots = ["--root", `work=${data}`, "--root", `docs=${join(folder, "docs")}`];
    await withClient(onInput([...roots, "--read-only"]), async ({ names, call }) => {
      assert.deepEqual(names, LOOKING);
      const read = await call("read_text_file", { path: "docs/guide.md" });
      assert.equal(read.content[0].text, "read me");
      const found = await call("search_files", { path: "work", pattern: "main" });
      assert.equal(text(found), "work/src/main.rs");
      const lost = await call("read_text_file", { path: "guide.md" });
      assert.match(lost.content[0].text, /work \(.*docs \(/);
    });
  }));

test("progress is reported, and cancelling a call ends only that call", how, () =>
  inFolder(async ({ data }) => {
    await withClient(onInput(["--root", data]), async ({ call }) => {
      const read = await call("read_multiple_files", {
        paths: ["note.txt", "missing", "src/main.rs"],
      });
      const blocks = read.content.map((block) => block.text);
      const [mark] = /^\[file-\w+\] /.exec(blocks[0]);
      assert.ok(blocks.every((block) => block.startsWith(mark)), blocks.join());
      const [note, missing, main] = blocks.map((block) => block.slice(mark.length));
      assert.equal(note, "note.txt:\ncall back\ntoday\n");
      assert.match(missing, /^missing: .*no such file/);
      assert.equal(main, "src/main.rs:\nfn main() {}\n");
      assert.ok(await toldInOrder(call) > 0);
      const cancel = new AbortController();
      const searched = call("search_text", { path: "", pattern: "x" }, { signal: cancel.signal });
      cancel.abort("enough");
      await assert.rejects(searched, /enough|abort/i);
      assert.equal((await call("read_text_file", { path: "note.txt" })).isError ?? false, false);
    });
  }));

test("code tools are enabled by their option only", how, () =>
  inFolder(async ({ data }) => {
    const more = ["--streams", "--code", "--programs", "--cache", engine()];
    await withClient(onInput(["--root", data, ...more]), async ({ names, call }) => {
      const all = [...LOOKING, ...CHANGING, ...OF_STREAMS, ...OF_CODE].sort();
      assert.deepEqual(names, all);
      const code = "const text = (await fns.read_file({ path: 'note.txt' })).content;\n"
        + "await fns.write_file({ path: 'shout.txt', content: text.toUpperCase() }); 'done'";
      const ran = await call("code_execute", { code, functions: ["read_file", "write_file"] });
      assert.equal(value(ran), "done");
      assert.equal(readFileSync(join(data, "shout.txt"), "utf8"), "CALL BACK\nTODAY\n");
      await runsPrograms(call);
    });
  }));

test("a datagram is decoded, and invalid bytes are refused", how, () =>
  inFolder(async ({ data }) => {
    await withClient(onInput(["--root", data]), async ({ call }) => {
      const hex = "2001000c00000100006000040a0b0c0d";
      const { messages } = value(await call("pfcp_decode", { hex }));
      assert.equal(messages[0].name, "Heartbeat Request");
      const refused = await call("pfcp_decode", { hex: "20" });
      assert.equal(refused.isError, true);
    });
  }));

test("a node serves agents over HTTP, behind its token", how, () =>
  inFolder(async ({ folder }) => {
    writeFileSync(join(folder, "token"), "a token for agents\n", { mode: 0o600 });
    const config = `
      [metrics]
      listen = "127.0.0.1:0"
      [mcp]
      http = true
      deadline = "10m"
      token_file = ${JSON.stringify(join(folder, "token"))}
      [components]
      cache = ${JSON.stringify(engine())}
      [[tools.files]]
      root = "data"
      [tools.streams]
      enabled = true
      [tools.code]
      enabled = true
      [tools.code.limits]
      time = "10m"
      deadline = "10m"
      [tools.programs]
      enabled = true`;
    await withNode(folder, config, async ({ http, control }) => {
      const bearer = { Authorization: "Bearer a token for agents" };
      const at = (headers) =>
        new StreamableHTTPClientTransport(new URL(`http://${http}/mcp`), {
          requestInit: { headers },
        });
      for (const [name, headers, refusal] of [
        ["stranger", {}, /401|authorization/i],
        ["page", { ...bearer, Origin: "https://evil.example" }, /403|origin/i],
      ]) {
        const refused = new Client({ name, version: "1" });
        await ending(() => refused.close(), () =>
          assert.rejects(refused.connect(at(headers), LONG), refusal));
      }

      let atNode;
      await withClient(at(bearer), async ({ names, call }) => {
        assert.deepEqual(names, [...LOOKING, ...CHANGING, ...OF_NODE].sort());
        const first = await call("read_file", { path: "note.txt", head: 1 });
        assert.equal(first.content[0].text, "call back\n");
        const told = [];
        const onprogress = ({ progress }) => told.push(progress);
        await call("read_multiple_files", { paths: ["note.txt"] }, { onprogress });
        assert.deepEqual(told, [0, 1]);
        const refused = await call("read_file", { path: "../secret" });
        assert.match(refused.content[0].text, /rule: outside/);
        await continues(join(folder, "data"), call);
        const tree = await call("actor_tree", { path: "/tools" });
        assert.deepEqual(value(tree).actors.map(({ path }) => path).sort(), [
          "/tools",
          "/tools/code",
          "/tools/files",
          "/tools/programs",
          "/tools/programs/published",
          "/tools/streams",
        ]);
        const one = await call("inspect", { path: "/tools/files" });
        assert.equal(value(one).details.tool.verbs.read.refused, 1);
        await call("stream_open", { stream: "build" });
        const nobody = await call("stream_write", { stream: "build", text: "compiling" });
        assert.deepEqual(nobody.structuredContent, { readers: 0 });
        const isRead = async () => {
          const { streams } = value(await call("stream_list", {}));
          return streams[0].readers === 1;
        };
        const reading = call("stream_read", { stream: "build", most: 2, wait_ms: 30_000 });
        await until(isRead);
        await call("stream_write", { stream: "build", text: " done" });
        const pieces = await reading;
        const blocks = pieces.content.map((block) => block.text);
        assert.deepEqual(blocks, ["compiling", " done", "(more may follow)"]);
        const facts = { count: 2, ended: false, failed: false };
        assert.deepEqual(pieces.structuredContent, facts);
        const tofile = call("stream_to_file", { stream: "build", path: "build.txt" });
        await until(isRead);
        await call("stream_end", { stream: "build" });
        const written = { pieces: 2, octets: 14, failed: false };
        assert.deepEqual((await tofile).structuredContent, written);
        assert.equal(readFileSync(join(folder, "data/build.txt"), "utf8"), "compiling done");
        await runsCode(call);
        await runsPrograms(call);
        await answersAllAtOnce(call);
        atNode = names;
      });

      // The same tools for an agent that starts the program beside the node.
      await withClient(onInput(["--control", control]), async ({ names, call }) => {
        assert.deepEqual(names, atNode);
        const read = await call("read_text_file", { path: "note.txt", head: 1 });
        assert.equal(read.content[0].text, "call back\n");
        assert.ok(await toldInOrder(call) > 0);
        await runsCode(call);
        await runsPrograms(call);
        const lost = await call("read_text_file", { path: "/etc/passwd" });
        assert.match(lost.content[0].text, /rule: absolute/);
      });
    });
  }));
