import assert from "node:assert/strict";
import { test } from "node:test";

import { type ActorRef, ActorSystem, connect, startNode } from "../src/index.js";
import { VirtualClock } from "../src/testing.js";
import { echo, Peer } from "./peer.js";

type Any = {
  echo: { payload: unknown; reply: unknown };
  items: { item: number };
};

/** Values that are not times or too small, and some that exceed the limit of a frame. */
const WRONG = [NaN, Infinity, -Infinity, 0, -1, 1e12, 2 ** 32];
/** The longest deadline, and one with a fraction. */
const RIGHT = [2 ** 32 - 1, 60_000.5];

function here(): ActorRef<Any> {
  const system = new ActorSystem({ clock: new VirtualClock() });
  return system.spawn<Any>("a", () => ({
    handle: { echo: (payload) => payload, items: () => [1, 2].values() },
  }));
}

async function there(): Promise<{ readonly peer: Peer; readonly actor: ActorRef<Any> }> {
  const peer = new Peer((frame, line) => {
    if (frame.kind === "call" && frame.credit > 0) line.say({ kind: "done", id: frame.id });
    else echo(frame, line);
  });
  const node = await peer.connect();
  return { peer, actor: node.actor<Any>("a") };
}

async function refusesWrong(actor: ActorRef<Any>): Promise<void> {
  for (const deadlineMs of WRONG) {
    const wrong = { code: "bad-request", retryable: false, message: /deadlineMs is .*4294967295/ };
    await assert.rejects(actor.ask("echo", 1, { deadlineMs }), wrong);
    await assert.rejects(actor.stream("items", undefined, { deadlineMs }).next(), wrong);
  }
}

async function takesRight(actor: ActorRef<Any>): Promise<void> {
  for (const deadlineMs of RIGHT) {
    assert.equal(await actor.ask("echo", 1, { deadlineMs }), 1);
    for await (const item of actor.stream("items", undefined, { deadlineMs })) assert.ok(item);
  }
}

test("a deadline that never ends is refused at the call, in process", async () => {
  const actor = here();
  await refusesWrong(actor);
  await takesRight(actor);
});

test("a deadline that never ends is refused at the call, and nothing is sent", async () => {
  const { peer, actor } = await there();
  await refusesWrong(actor);
  assert.deepEqual(peer.line.frames, []);
  await takesRight(actor);
});

test("a text is no deadline", async () => {
  const options: object = { deadlineMs: "5000" };
  const asked = here().ask("echo", 1, options);
  await assert.rejects(asked, { code: "bad-request", message: /deadlineMs is "5000"/ });
});

test("deadlines of a system, connection and node are refused where they are given", async () => {
  for (const ms of WRONG) {
    const wrong = { code: "bad-request", message: /Ms is / };
    assert.throws(() => new ActorSystem({ deadlineMs: ms }), wrong);
    await assert.rejects(connect("/nowhere", { deadlineMs: ms }), wrong);
    await assert.rejects(connect("/nowhere", { helloMs: ms }), wrong);
    await assert.rejects(startNode({ binary: "/nowhere", readyMs: ms }), wrong);
  }
  // The timers of the runtime support no longer delays: a longer one would fire at once.
  for (const readyMs of [2 ** 31, 2 ** 32 - 1]) {
    const wrong = { code: "bad-request", message: /readyMs is .*2147483647/ };
    await assert.rejects(startNode({ binary: "/nowhere", readyMs }), wrong);
  }
});

test("times that would keep an actor from ending or beginning anew are refused at spawn", () => {
  const system = new ActorSystem({ clock: new VirtualClock() });
  const make = () => ({ handle: {} });
  for (const ms of [NaN, Infinity, -1, 1e12]) {
    const wrong = { code: "bad-request", message: /Ms is / };
    assert.throws(() => system.spawn("a", make, { shutdownMs: ms }), wrong);
    const initial = { backoff: { initialMs: ms, maxMs: 10 } };
    assert.throws(() => system.spawn("a", make, initial), wrong);
    const most = { backoff: { initialMs: 10, maxMs: ms } };
    assert.throws(() => system.spawn("a", make, most), wrong);
    const within = { intensity: { restarts: 1, withinMs: ms } };
    assert.throws(() => system.spawn("a", make, within), wrong);
  }
  const none = { backoff: { initialMs: 0, maxMs: 0 }, shutdownMs: 0 };
  assert.ok(system.spawn("a", make, none).isAlive);
});

test("a collection is an answer and no stream, whatever its handler is declared as", async () => {
  type Streams = { list: { item: number }; set: { item: number }; late: { item: number } };
  const system = new ActorSystem({ clock: new VirtualClock() });
  const actor = system.spawn<Streams>("streams", () => ({
    handle: {
      // @ts-expect-error: an array is an answer; its values() are a stream.
      list: () => [1, 2],
      // @ts-expect-error: as above.
      set: () => new Set([1, 2]),
      // @ts-expect-error: as above, and a stream is not waited for.
      late: () => Promise.resolve([1, 2]),
    },
  }));
  for (const type of ["list", "set", "late"] as const) {
    const wrong = { code: "bad-request", message: /is no stream: .* values\(\)/ };
    await assert.rejects(actor.stream(type).next(), wrong, type);
  }
});

test("what is read as a stream is never asked, however it makes its items", async () => {
  const items = [1, 2];
  type Streams = {
    generator: { item: number };
    values: { item: number };
    entries: { item: [number, number] };
    iterable: { item: number };
    async: { item: number };
    late: { item: number };
  };
  const system = new ActorSystem({ clock: new VirtualClock() });
  system.spawn<Streams>("streams", () => ({
    handle: {
      *generator() {
        yield* items;
      },
      values: () => new Set(items).values(),
      entries: () => new Map([[1, 2]]).entries(),
      iterable: () => ({ [Symbol.iterator]: () => items.values() }),
      async *async() {
        yield* items;
      },
      // @ts-expect-error: a stream is not waited for.
      late: () => Promise.resolve(items.values()),
    },
  }));
  const actor = system.find("streams");
  assert.ok(actor);
  for (const type of ["generator", "values", "entries", "iterable", "async", "late"]) {
    const text = `${type} is a stream: it is read with stream("${type}"), not asked`;
    await assert.rejects(actor.ask(type, undefined), { code: "bad-request", message: text });
    const { done } = await actor.stream(type, undefined).next();
    assert.equal(done, false, type);
  }
});

test("an ask of a stream does not compile, and is refused where types are not known", async () => {
  const system = new ActorSystem({ clock: new VirtualClock() });
  let isLeft = 0;
  type Streams = {
    sync: { item: number };
    async: { item: number };
    list: { reply: readonly number[] };
    settled: { payload: number; reply: Map<string, number> };
  };
  const actor = system.spawn<Streams>("streams", () => ({
    handle: {
      *sync() {
        yield 1;
      },
      async: () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => Promise.resolve({ done: false as const, value: 1 }),
          return: () => {
            isLeft += 1;
            return Promise.resolve({ done: true as const, value: undefined });
          },
        }),
      }),
      list: () => [1, 2],
      settled: (n) => new Map([["n", n]]),
    },
  }));
  const wrong = { code: "bad-request", message: /stream\(/ };
  // @ts-expect-error: a stream is read, not asked.
  await assert.rejects(actor.ask("sync"), wrong);
  // @ts-expect-error: as above.
  await assert.rejects(actor.ask("async"), wrong);
  assert.equal(isLeft, 1);
  const untyped = system.find("streams");
  await assert.rejects(untyped?.ask("sync", undefined) ?? Promise.resolve(), wrong);
  // A collection is an answer even though it is iterable.
  assert.deepEqual(await actor.ask("list"), [1, 2]);
  assert.deepEqual(await actor.ask("settled", 2), new Map([["n", 2]]));
  assert.deepEqual(await actor.stream("sync").next(), { done: false, value: 1 });
});
