import assert from "node:assert/strict";
import { test } from "node:test";

import type { Dial } from "../src/client/line.js";
import { MessageError } from "../src/index.js";
import { echo, Peer, silent } from "./peer.js";

type Any = {
  echo: { payload: unknown; reply: unknown };
  note: { payload: number };
  items: { item: number };
};

async function setup(serve = echo, options = {}, around = {}) {
  const peer = new Peer(serve);
  const node = await peer.connect(options, around);
  return { peer, node, actor: node.actor<Any>("a/b") };
}

test("a name is bound once, and a call says who, what and how long", async () => {
  const { peer, actor } = await setup();
  assert.equal(await actor.ask("echo", "one", { deadlineMs: 250 }), "one");
  assert.equal(await actor.ask("echo", "two"), "two");
  await actor.tell("note", 3);
  const { line } = peer;
  assert.deepEqual(line.all("name").map(({ text }) => text), ["@(a/b) echo", "@(a/b) note"]);
  const calls = line.all("call").map(({ frame, text }) => [frame.id, frame.target, text]);
  assert.deepEqual(calls, [[1, 1, '"one"'], [2, 1, '"two"']]);
  assert.deepEqual(line.all("call").map(({ frame }) => frame.deadline), [250, 5000]);
  assert.deepEqual(line.all("tell").map(({ frame }) => [frame.id, frame.target]), [[3, 2]]);
});

test("what is asked in one turn leaves in one piece", async () => {
  const { peer, actor } = await setup();
  const asked = [1, 2, 3, 4, 5].map((n) => actor.ask("echo", n));
  assert.deepEqual(await Promise.all(asked), [1, 2, 3, 4, 5]);
  assert.equal(peer.line.batches, 1);
});

test("payloads keep their kind", async () => {
  const { peer, actor } = await setup((frame, line) => {
    if (frame.kind !== "call") return;
    if (frame.content === "bytes") line.say({ kind: "done", id: frame.id, octets: frame.payload });
    else echo(frame, line);
  });
  const long = "ä€😀".repeat(40);
  for (const value of [null, 0, "text", long, [1, [2]], { a: { b: null } }, undefined]) {
    assert.deepEqual(await actor.ask("echo", value), value);
  }
  assert.deepEqual(await actor.ask("echo", new Uint8Array([0, 255])), new Uint8Array([0, 255]));
  assert.deepEqual(peer.line.all("call").at(-1)?.frame.content, "bytes");
});

test("calls beyond what the node takes wait, and stay in order", async () => {
  const held: number[] = [];
  const { peer, actor } = await setup((frame) => {
    if (frame.kind === "call") held.push(frame.id);
  });
  const asked = Array.from({ length: 20 }, (_, n) => actor.ask("echo", n));
  await peer.clock.settle();
  assert.equal(held.length, 8);
  for (let id = 1; id <= 20; id += 1) {
    peer.line.say({ kind: "done", id, json: id - 1 });
    await peer.clock.settle();
  }
  assert.deepEqual(await Promise.all(asked), Array.from({ length: 20 }, (_, n) => n));
  assert.deepEqual(held, Array.from({ length: 20 }, (_, n) => n + 1));
});

test("more calls than may wait are refused as full", async () => {
  const { peer, actor } = await setup(silent, { waiting: 2 });
  const ask = () => actor.ask("echo", 1).catch((error: unknown) => error);
  const asked = Array.from({ length: 11 }, ask);
  const last = await asked[10];
  assert.ok(last instanceof MessageError);
  assert.deepEqual([last.code, last.retryable], ["full", true]);
  assert.equal(peer.line.all("call").length, 8);
});

test("a payload that throws when it is looked at fails its call alone", async () => {
  const { peer, actor } = await setup();
  const payload = new Proxy({}, {
    getPrototypeOf: () => {
      throw new Error("hostile");
    },
  });
  const wrong = { code: "bad-request", message: /hostile/ };
  // Those that wait for room are sent where no caller could catch what is thrown.
  const asked = Array.from({ length: 10 }, (_, n) => actor.ask("echo", n));
  const refused = [actor.ask("echo", payload), actor.tell("echo", payload)].map((each) =>
    assert.rejects(each, wrong));
  await peer.clock.settle();
  await Promise.all([...asked, ...refused]);
});

test("calls that are given up leave their places among those that wait", async () => {
  const { peer, actor } = await setup(silent, { waiting: 2 });
  const abort = new AbortController();
  const { signal } = abort;
  for (let n = 0; n < 8; n += 1) void actor.ask("echo", n).catch(() => {});
  const given = [
    assert.rejects(actor.ask("echo", 8, { signal }), { code: "cancelled" }),
    assert.rejects(actor.ask("echo", 9, { deadlineMs: 10 }), { code: "deadline" }),
  ];
  await assert.rejects(actor.ask("echo", 10), { code: "full" });
  abort.abort();
  await peer.clock.advance(100);
  await Promise.all(given);
  const kept = actor.ask("echo", 11);
  peer.line.say({ kind: "done", id: 1 });
  await peer.clock.settle();
  peer.line.say({ kind: "done", id: 9, json: 12 });
  assert.equal(await kept, 12);
  assert.equal(peer.line.all("call").at(-1)?.text, "11");
});

test("a node that is asked to hold back gets nothing until it has drained", async () => {
  const { peer, actor } = await setup();
  peer.line.isFull = true;
  await actor.ask("echo", 1);
  const later = actor.ask("echo", 2);
  await peer.clock.settle();
  assert.equal(peer.line.all("call").length, 1);
  peer.line.drain();
  assert.equal(await later, 2);
});

test("names that the node has no room for take the place of those unused for longest", async () => {
  const peer = new Peer(echo);
  peer.hello = { protocol: 2, frame: 1024, in_flight: 8, names: 2 };
  const node = await peer.connect();
  const ask = (at: string) => node.actor<Any>(at);
  const [a, b, c] = [ask("a"), ask("b"), ask("c")];
  for (const [n, ref] of [a, b, a, c, a, b, c].entries()) assert.equal(await ref.ask("echo", n), n);
  const bound = peer.line.all("name").map(({ frame, text }) => [frame.target, text.slice(2, 3)]);
  assert.deepEqual(bound.slice(0, 3), [[1, "a"], [2, "b"], [1, "c"]]);
  assert.ok(bound.every(([target]) => target === 1 || target === 2));
  // Each call went to the name that its number was bound to at that moment.
  const standing = new Map<number, string>();
  const called: string[] = [];
  for (const frame of peer.line.frames) {
    const text = new TextDecoder().decode(frame.payload);
    if (frame.kind === "name") standing.set(frame.target, text.slice(2, 3));
    if (frame.kind === "call") called.push(standing.get(frame.target) ?? "nobody");
  }
  assert.equal(called.join(""), "abacabc");
});

test("what is pending ends with lost when the connection is lost, streams as well", async () => {
  const { peer, actor } = await setup(silent);
  const asked = assert.rejects(actor.ask("echo", 1), { code: "lost", message: /cable was cut/ });
  const told = assert.rejects(actor.tell("note", 1), { code: "lost" });
  const read = assert.rejects(actor.stream("items").next(), { code: "lost" });
  await peer.clock.settle();
  peer.line.lose();
  await Promise.all([asked, told, read]);
});

test("the code says whether a call had left when its connection was lost", async () => {
  const { peer, actor } = await setup(silent);
  const left = assert.rejects(actor.ask("echo", 1), { code: "lost", retryable: true });
  await peer.clock.settle();
  const unsent = [actor.ask("echo", 2), actor.tell("note", 2), actor.stream("items").next()];
  peer.line.lose();
  await left;
  for (const each of unsent) {
    await assert.rejects(each, { code: "unreachable", retryable: true, message: /cable was cut/ });
  }
  const ids = peer.lines.flatMap((line) => line.all("call")).map(({ frame }) => frame.id);
  assert.deepEqual(ids, [1]);
});

test("calls wait for the next connection, which binds its names anew", async () => {
  const { peer, node, actor } = await setup();
  await actor.ask("echo", 1);
  peer.line.lose();
  assert.equal(node.state, "lost");
  const asked = actor.ask("echo", 2, { deadlineMs: 1000 });
  await peer.clock.advance(200);
  assert.equal(await asked, 2);
  assert.equal(node.state, "open");
  assert.deepEqual(peer.line.all("name").map(({ text }) => text), ["@(a/b) echo"]);
  const [call] = peer.line.all("call");
  assert.ok(call !== undefined && call.frame.id === 1);
  assert.ok(call.frame.deadline < 1000, "the time that it waited is taken off");
});

test("a call that waits for a connection ends at its deadline", async () => {
  const { peer, actor } = await setup();
  peer.isDown = true;
  peer.line.lose();
  const asked = assert.rejects(actor.ask("echo", 1, { deadlineMs: 100 }), { code: "deadline" });
  await peer.clock.advance(150);
  await asked;
});

test("calls fail at once while there is no connection, if that is the wish", async () => {
  const { peer, actor } = await setup(echo, { whileLost: "fail" });
  peer.line.lose();
  await assert.rejects(actor.ask("echo", 1), {
    code: "unreachable",
    retryable: true,
    message: "no connection to /peer: the connection was lost: the cable was cut",
  });
});

test("attempts to connect again wait longer and longer", async () => {
  const peer = new Peer(echo);
  const at: number[] = [];
  const dial: Dial = (place, events) => {
    at.push(peer.clock.now());
    return peer.dial(place, events);
  };
  const node = await peer.connect({ backoff: { initialMs: 100, maxMs: 400 } }, { dial });
  peer.isDown = true;
  peer.line.lose();
  await peer.clock.advance(1400);
  const pauses = at.slice(1).map((time, n) => time - (at[n] ?? 0));
  for (const [n, pause] of [100, 200, 400, 400].entries()) {
    const waited = pauses[n] ?? 0;
    assert.ok(waited >= pause && waited <= pause + 30, `${waited} is a pause of ${pause}`);
  }
  peer.isDown = false;
  await peer.clock.advance(450);
  assert.equal(node.state, "open");
});

test("a connection that the node let go of comes back with the next call", async () => {
  const { peer, node, actor } = await setup();
  await actor.ask("echo", 1);
  const idle = { code: "idle", message: "no frame for 60s", retryable: true };
  peer.line.say({ kind: "error", json: idle });
  assert.equal(node.state, "idle");
  await peer.clock.advance(60_000);
  assert.equal(peer.lines.length, 1);
  assert.equal(await actor.ask("echo", 2), 2);
  assert.equal(peer.lines.length, 2);
});

test("an ask that is given up is cancelled in the node, and its answer dropped", async () => {
  const { peer, actor } = await setup(silent);
  const abort = new AbortController();
  const { signal } = abort;
  const first = assert.rejects(actor.ask("echo", 1, { signal }), { code: "cancelled" });
  const second = assert.rejects(actor.ask("echo", 2, { deadlineMs: 50 }), { code: "deadline" });
  await peer.clock.settle();
  abort.abort();
  await peer.clock.advance(100);
  await Promise.all([first, second]);
  assert.deepEqual(peer.line.all("cancel").map(({ frame }) => frame.id), [1, 2]);
  peer.serve = echo;
  peer.line.say({ kind: "done", id: 1 }, { kind: "done", id: 2 });
  assert.equal(await actor.ask("echo", 3), 3);
});

test("an ask with a signal that was aborted before is not sent", async () => {
  const { peer, actor } = await setup();
  const asked = actor.ask("echo", 1, { signal: AbortSignal.abort() });
  await assert.rejects(asked, { code: "cancelled" });
  await peer.clock.settle();
  assert.equal(peer.line.frames.length, 0);
});

test("a stream gives credit as its reader takes items", async () => {
  const { peer, actor } = await setup(silent);
  const stream = actor.stream("items", undefined, { window: 4 });
  await peer.clock.settle();
  const [call] = peer.line.all("call");
  assert.deepEqual([call?.frame.credit, call?.frame.deadline], [4, 0]);
  const items = [0, 1, 2, 3].map((json) => ({ kind: "item", id: 1, json }) as const);
  peer.line.say(...items);
  const got: number[] = [];
  for (let n = 0; n < 4; n += 1) {
    const { value } = await stream.next();
    if (value !== undefined) got.push(value);
  }
  await peer.clock.settle();
  assert.deepEqual(got, [0, 1, 2, 3]);
  assert.deepEqual(peer.line.all("credit").map(({ frame }) => frame.credit), [2, 2]);
  peer.line.say({ kind: "item", id: 1, json: 4 }, { kind: "done", id: 1 });
  assert.deepEqual(await stream.next(), { done: false, value: 4 });
  assert.deepEqual(await stream.next(), { done: true, value: undefined });
});

test("a reader that stops cancels its stream, and what still comes is dropped", async () => {
  const { peer, actor } = await setup((frame, line) => {
    const item = { kind: "item", id: 1, json: frame.id } as const;
    if (frame.kind === "call") line.say(item, item);
  });
  for await (const item of actor.stream("items")) {
    assert.equal(item, 1);
    break;
  }
  await peer.clock.settle();
  assert.deepEqual(peer.line.all("cancel").map(({ frame }) => frame.id), [1]);
  const cancelled = { code: "cancelled", message: "the caller cancelled", retryable: false };
  peer.line.say({ kind: "item", id: 1, json: 1 }, { kind: "error", id: 1, json: cancelled });
  peer.serve = echo;
  assert.equal(await actor.ask("echo", 1), 1);
});

test("an answer to a stream that is no stream is a bad request", async () => {
  const { node } = await setup();
  const stream = node.actor("a/b").stream("echo", 7);
  await assert.rejects(stream.next(), { code: "bad-request", message: /echo is no stream/ });
});

for (const [what, say] of [
  ["an item without credit", { kind: "item", id: 1, json: 1 }],
  ["an answer to what was not asked", { kind: "done", id: 9 }],
  ["a second hello", { kind: "hello", json: { protocol: 2 } }],
  ["a frame that only clients send", { kind: "call", id: 1 }],
] as const) {
  test(`${what} ends the connection, not the client`, async () => {
    const { peer, actor } = await setup(silent);
    const asked = assert.rejects(actor.ask("echo", 1), { code: "lost" });
    await peer.clock.settle();
    peer.line.say(say);
    await asked;
    assert.equal(peer.line.isClosed, true);
    peer.serve = echo;
    await peer.clock.advance(200);
    assert.equal(await actor.ask("echo", 2), 2);
  });
}

test("an answer that is not what it says ends the connection", async () => {
  const { peer, actor } = await setup(silent);
  const asked = assert.rejects(actor.ask("echo", 1), { code: "lost", message: /no json/ });
  await peer.clock.settle();
  const octets = new Uint8Array(25);
  octets.set([0, 0, 0, 1, 5, 1, 0, 0, 0, 0, 0, 1]);
  octets[24] = "{".charCodeAt(0);
  peer.line.raw(octets);
  await asked;
});

test("errors come with code, message and details", async () => {
  const error = { code: "refused", message: "not today", retryable: false, details: { why: 1 } };
  const { actor } = await setup((frame, line) => {
    if (frame.kind === "call") line.say({ kind: "error", id: frame.id, json: error });
  });
  await assert.rejects(actor.ask("echo", 1), error);
});

test("what cannot be sent is a bad request, and the connection goes on", async () => {
  const { actor } = await setup();
  await assert.rejects(actor.ask("echo", 7n), { code: "bad-request", message: /no JSON/ });
  await assert.rejects(actor.ask("echo", "x".repeat(1023)), {
    code: "bad-request",
    message: /longer than the 1024 octets/,
  });
  assert.equal(await actor.ask("echo", "x".repeat(1022)), "x".repeat(1022));
});

test("an unfit name is a bad request", async () => {
  const { node } = await setup();
  const actor = node.actor("a/b");
  await assert.rejects(actor.ask("two words", 1), { code: "bad-request" });
  await assert.rejects(actor.stream("", 1).next(), { code: "bad-request" });
  assert.throws(() => node.actor("../a"), { code: "bad-request" });
});

test("a node that says nothing is given up", async () => {
  const peer = new Peer(echo);
  peer.hello = undefined;
  const message = "/peer said no hello within 200 ms";
  const connecting = assert.rejects(peer.connect({ helloMs: 200 }), { code: "deadline", message });
  await peer.clock.advance(250);
  await connecting;
  assert.equal(peer.line.isClosed, true);
});

test("somebody else than a node is told apart", async () => {
  for (const octets of [new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n")]) {
    const peer = new Peer(echo);
    peer.hello = undefined;
    const connecting = assert.rejects(peer.connect(), { code: "protocol" });
    peer.line.raw(octets);
    await connecting;
  }
});

test("a node that has no room says so", async () => {
  const peer = new Peer(echo);
  peer.hello = undefined;
  const full = { code: "full", message: "64 connections, which is the limit", retryable: true };
  const connecting = assert.rejects(peer.connect(), full);
  peer.line.say({ kind: "error", json: full });
  await connecting;
});

test("nobody at the place is an error at once", async () => {
  const peer = new Peer(echo);
  peer.isDown = true;
  await assert.rejects(peer.connect(), { code: "unreachable", message: /nobody listens/ });
});

test("a token goes before all else, and connect waits until it was taken", async () => {
  const peer = new Peer((frame, line) => {
    const json = { code: "unknown-target", message: "no name", retryable: false };
    const { kind, id, target } = frame;
    if (kind === "call" && target === 0) line.say({ kind: "error", id, json });
    else echo(frame, line);
  });
  peer.hello = { protocol: 2, frame: 1024, in_flight: 8, token: true };
  const node = await peer.connect({ token: "secret" });
  assert.equal(await node.actor<Any>("a").ask("echo", 1), 1);
  const [first] = peer.line.frames;
  assert.deepEqual([first?.kind, new TextDecoder().decode(first?.payload)], ["token", "secret"]);
});

test("a token that is wrong or missing is refused", async () => {
  const peer = new Peer((frame, line) => {
    const json = { code: "refused", message: "the token is wrong", retryable: false };
    if (frame.kind === "token") line.say({ kind: "error", json });
  });
  peer.hello = { protocol: 2, frame: 1024, in_flight: 8, token: true };
  await assert.rejects(peer.connect({ token: "guess" }), { code: "refused", message: /is wrong/ });
  await assert.rejects(peer.connect(), { code: "refused", message: /requires a token/ });
});

test("a node of version 1 has methods and no actors", async () => {
  const peer = new Peer(echo);
  peer.hello = { protocol: 1, frame: 1024, in_flight: 8 };
  const node = await peer.connect();
  assert.equal(await node.control.ask("ping", 1), 1);
  assert.deepEqual(peer.line.all("name").map(({ text }) => text), ["ping"]);
  const asked = node.actor("a").ask("echo", 1);
  await assert.rejects(asked, { code: "protocol", message: /version 1/ });
});

test("a connection whose ids are used up is followed by another", async () => {
  const { peer, actor } = await setup(echo, {}, { firstId: 0xffff_ffff });
  const asked = [actor.ask("echo", 1), actor.ask("echo", 2)];
  assert.deepEqual(await Promise.all(asked), [1, 2]);
  assert.deepEqual(peer.lines.map((line) => line.all("call").map(({ frame }) => frame.id)), [
    [0xffff_ffff],
    [1],
  ]);
});

test("closing ends all that is pending or waits, and all that comes later", async () => {
  const { peer, node, actor } = await setup(silent);
  const asked = Array.from({ length: 10 }, () => actor.ask("echo", 1));
  const ended = asked.map((each) => assert.rejects(each, { code: "cancelled" }));
  const read = assert.rejects(actor.stream("items").next(), { code: "cancelled" });
  node.close();
  await Promise.all([...ended, read]);
  await assert.rejects(actor.ask("echo", 1), {
    code: "cancelled",
    message: "the client was closed",
  });
  await assert.rejects(node.opened(), { code: "cancelled" });
  assert.deepEqual([node.state, peer.line.isClosed], ["closed", true]);
});

test("a topic is read, and listened to over a loss", async () => {
  const { peer, node } = await setup(silent);
  const heard: number[] = [];
  const undo = node.topic<number>("news").listen((value) => heard.push(value));
  await peer.clock.settle();
  assert.deepEqual(peer.line.all("name").map(({ text }) => text), ["@(topic/news) subscribe"]);
  peer.line.say({ kind: "item", id: 1, json: { value: 1 } });
  await peer.clock.settle();
  peer.line.lose();
  await peer.clock.advance(200);
  peer.line.say({ kind: "item", id: 1, json: { value: 2, missed: 3 } });
  await peer.clock.settle();
  assert.deepEqual(heard, [1, 2]);
  undo();
  await peer.clock.settle();
  assert.deepEqual(peer.line.all("cancel").map(({ frame }) => frame.id), [1]);

  const reader = node.topic<number>("news").subscribe();
  await peer.clock.settle();
  peer.line.say({ kind: "item", id: 2, json: { value: 5, missed: 3 } });
  assert.deepEqual(await reader.next(), { done: false, value: 5 });
  assert.equal(reader.missed, 3);
});
