import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as dial } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { connect, type StartedNode, startNode } from "../src/index.js";
import { nodeOrSkip, patient } from "./binary.js";
import type { Program } from "./program.js";

const { program: binary, skip } = nodeOrSkip();
const how = { timeout: 60_000, skip };
const token = "correct-horse-battery-staple-0123456789";
const viewer = "a-viewer-who-only-looks-0123456789";

let node: StartedNode | undefined;
let folder = "";
before(async () => {
  if (skip !== false) return;
  folder = mkdtempSync(join(tmpdir(), "strowger-"));
  const file = join(folder, "token");
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  const ofViewer = join(folder, "viewer");
  writeFileSync(ofViewer, `${viewer}\n`, { mode: 0o600 });
  const config = join(folder, "node.toml");
  writeFileSync(config, `[gateway]
tcp = "127.0.0.1:0"
web = "127.0.0.1:0"
origins = ["https://known.example"]
token_file = ${JSON.stringify(file)}
[[doors.token]]
name = "viewer"
file = ${JSON.stringify(ofViewer)}
role = "viewer"
addresses = ["/**"]
`);
  const args = ["--config", config, "--port", "0", "--conformance"];
  node = await startNode({ ...patient, binary, args });
});
after(async () => {
  await node?.stop();
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
});

const placeOf = {
  tcp: () => `tcp://${String(node?.announcement["tcp"])}`,
  web: () => `ws://${String(node?.announcement["web"])}`,
} as const;

for (const [door, place] of Object.entries(placeOf)) {
  test(`actors are asked, told and read over ${door}`, how, async () => {
    await using client = await connect(place(), { ...patient.connect, token });
    const actor = client.actor<Program>("conformance/echo");
    const long = "long ".repeat(40_000);
    assert.equal(await actor.ask("echo", long), long);
    const asked = Array.from({ length: 100 }, (_, n) => actor.ask("echo", n));
    assert.deepEqual(await Promise.all(asked), Array.from({ length: 100 }, (_, n) => n));
    await actor.tell("add", 1);
    const got: number[] = [];
    const items = actor.stream("numbers", { from: 0, to: 500 }, { window: 3 });
    for await (const n of items) got.push(n);
    assert.deepEqual(got, Array.from({ length: 500 }, (_, n) => n));
  });

  test(`what a token does not grant is forbidden over ${door}`, how, async () => {
    await using client = await connect(place(), { ...patient.connect, token: viewer });
    const actor = client.actor<Program>("conformance/echo");
    const details = {
      token: "viewer", role: "viewer", verb: "ask", address: "/conformance/echo", rule: "role",
    };
    const forbidden = { code: "forbidden", retryable: false, details };
    await assert.rejects(actor.ask("echo", 1), forbidden);
    await assert.rejects(actor.tell("add", 1), { code: "forbidden", message: /role viewer/ });
    assert.equal(client.state, "open");
  });

  test(`a client without the token is refused over ${door}`, how, async () => {
    await assert.rejects(connect(place()), { code: "refused" });
    await assert.rejects(connect(place(), { token: "guess" }), { code: "refused" });
  });

  test(`what is longer than the node takes is not sent over ${door}`, how, async () => {
    await using client = await connect(place(), { ...patient.connect, token });
    const actor = client.actor<Program>("conformance/echo");
    const long = "x".repeat(2 << 20);
    await assert.rejects(actor.ask("echo", long), { code: "bad-request", message: /longer than/ });
    assert.equal(await actor.ask("echo", 1), 1);
    assert.equal(client.state, "open");
  });
}

/** Returns the first line of the endpoint's response to a page of this origin. */
function shake(origin: string | undefined): Promise<string> {
  const [host = "", port] = String(node?.announcement["web"]).split(":");
  const lines = [
    "GET / HTTP/1.1",
    `Host: ${host}:${port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ...(origin === undefined ? [] : [`Origin: ${origin}`]),
  ];
  return new Promise((resolve, reject) => {
    const socket = dial(Number(port), host, () => socket.write(`${lines.join("\r\n")}\r\n\r\n`));
    let said = "";
    socket.on("data", (octets) => {
      said += octets.toString("latin1");
      const end = said.indexOf("\r\n");
      if (end < 0) return;
      socket.destroy();
      resolve(said.slice(0, end));
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`it said ${JSON.stringify(said)}`)));
  });
}

test("a page is let in if its origin is one of those configured", how, async () => {
  for (const origin of [undefined, "https://known.example"]) {
    assert.match(await shake(origin), /^HTTP\/1\.1 101 /);
  }
  for (const origin of ["https://known.example.org", "http://known.example", "null"]) {
    assert.match(await shake(origin), /^HTTP\/1\.1 403 /);
  }
});
