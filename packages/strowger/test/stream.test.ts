import assert from "node:assert/strict";
import { test } from "node:test";

import { ActorSystem } from "../src/index.js";
import { VirtualClock } from "../src/testing.js";

type Numbers = {
  count: { payload: number; item: number };
  broken: { item: number };
  held: { item: number };
};

function setup() {
  const clock = new VirtualClock();
  const system = new ActorSystem({ clock });
  const facts = { made: 0, left: false, aborted: false };
  const ref = system.spawn<Numbers>("numbers", () => ({
    handle: {
      async *count(to, call) {
        try {
          for (let n = 1; n <= to; n += 1) {
            facts.made = n;
            yield n;
          }
        } finally {
          facts.left = true;
          facts.aborted = call.signal.aborted;
        }
      },
      *broken() {
        yield 1;
        throw new Error("no more");
      },
      async *held() {
        yield 1;
        await new Promise(() => {});
      },
    },
  }));
  return { clock, system, ref, facts };
}

test("a stream gives its items in order, and ends", async () => {
  const { ref } = setup();
  const seen: number[] = [];
  for await (const n of ref.stream("count", 200)) seen.push(n);
  assert.deepEqual(seen, Array.from({ length: 200 }, (_, n) => n + 1));
});

test("a reader that does not read stops the producer at its window", async () => {
  const { clock, ref, facts } = setup();
  const stream = ref.stream("count", 1000, { window: 8 });
  await clock.settle();
  assert.equal(facts.made, 8);
  for (let taken = 0; taken < 4; taken += 1) await stream.next();
  await clock.settle();
  assert.equal(facts.made, 12);
});

test("a reader that leaves ends the producer", async () => {
  const { clock, ref, facts } = setup();
  for await (const n of ref.stream("count", 1000)) if (n === 3) break;
  await clock.settle();
  assert.deepEqual([facts.left, facts.aborted, facts.made < 100], [true, true, true]);
});

test("a producer that fails ends the stream after what it gave", async () => {
  const { ref } = setup();
  const stream = ref.stream("broken");
  assert.deepEqual(await stream.next(), { done: false, value: 1 });
  await assert.rejects(stream.next(), { code: "failed", message: /no more/ });
  assert.equal((await stream.next()).done, true);
});

test("the end of the actor ends its streams", async () => {
  const { ref } = setup();
  const stream = ref.stream("held");
  await stream.next();
  const next = assert.rejects(stream.next(), { code: "failed" });
  await ref.stop();
  await next;
});

test("a signal and a deadline end a stream", async () => {
  const { clock, ref } = setup();
  const abort = new AbortController();
  const cancelled = ref.stream("held", undefined, { signal: abort.signal });
  const late = ref.stream("held", undefined, { deadlineMs: 100 });
  await Promise.all([cancelled.next(), late.next()]);
  abort.abort();
  await assert.rejects(cancelled.next(), { code: "cancelled" });
  const outcome = assert.rejects(late.next(), { code: "deadline" });
  await clock.advance(150);
  await outcome;
});

test("an actor has as many streams as it may", async () => {
  const system = new ActorSystem();
  const ref = system.spawn<{ held: { item: number } }>("numbers", () => ({
    handle: {
      async *held() {
        yield 1;
        await new Promise(() => {});
      },
    },
  }), { streams: 1 });
  const first = ref.stream("held");
  await first.next();
  await assert.rejects(ref.stream("held").next(), { code: "full" });
  await first.return?.();
  assert.deepEqual(await ref.stream("held").next(), { done: false, value: 1 });
  await system.shutdown();
});

test("an actor handles messages while it streams", async () => {
  const system = new ActorSystem();
  const ref = system.spawn<{ get: { reply: string }; held: { item: number } }>("both", () => ({
    handle: {
      get: () => "here",
      async *held() {
        await new Promise(() => {});
      },
    },
  }));
  const next = assert.rejects(ref.stream("held").next(), { code: "failed" });
  assert.equal(await ref.ask("get"), "here");
  await system.shutdown();
  await next;
});

function thrower(): never {
  throw new Error("hostile");
}

for (const [what, items] of Object.entries<AsyncIterable<number>>({
  "cannot be begun": { [Symbol.asyncIterator]: thrower },
  "cannot go on": { [Symbol.asyncIterator]: () => ({ next: thrower }) },
  "cannot be closed": {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: thrower }),
  },
})) {
  test(`a source that ${what} ends its stream, and the actors go on`, async () => {
    const { clock, system, ref } = setup();
    type Hostile = { go: { item: number }; ok: { reply: number } };
    const hostile = system.spawn<Hostile>("hostile", () => ({
      handle: { go: () => items, ok: () => 1 },
    }));
    const read = assert.rejects(async () => {
      for await (const _ of hostile.stream("go", undefined, { deadlineMs: 10 }));
    }, { code: what === "cannot be closed" ? "deadline" : "failed" });
    await clock.advance(50);
    await read;
    assert.equal(await hostile.ask("ok"), 1);
    // The wheel goes on as well.
    const held = ref.stream("held", undefined, { deadlineMs: 10 });
    await held.next();
    await clock.advance(50);
    await assert.rejects(held.next(), { code: "deadline" });
    hostile.stream("go");
    await clock.settle();
    assert.deepEqual(await hostile.stop(), { reason: "stopped" });
  });
}
