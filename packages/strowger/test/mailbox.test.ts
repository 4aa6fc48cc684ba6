import assert from "node:assert/strict";
import { test } from "node:test";

import { ActorSystem, type Overflow } from "../src/index.js";
import { VirtualClock } from "../src/testing.js";

type Notes = { note: { payload: number }; seen: { reply: number[] } };

/** Starts an actor of capacity 3 that blocks until `open` is called, so that all messages wait. */
function setup(overflow: Overflow) {
  const clock = new VirtualClock();
  const system = new ActorSystem({ clock });
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const seen: number[] = [];
  const ref = system.spawn<Notes>("notes", async () => {
    await opened;
    return { handle: { note: (n) => void seen.push(n), seen: () => seen } };
  }, { capacity: 3, overflow });
  return { clock, system, ref, seen, open };
}

for (const [overflow, kept, dropped] of [
  ["drop-newest", [0, 1, 2], 2],
  ["drop-oldest", [2, 3, 4], 2],
  ["keep-latest", [3, 4], 3],
] as const) {
  test(`${overflow} keeps what it says, and counts the rest`, async () => {
    const { clock, system, ref, seen, open } = setup(overflow);
    for (let n = 0; n < 5; n += 1) await ref.tell("note", n);
    open();
    await clock.settle();
    assert.deepEqual(seen, kept);
    assert.equal(ref.info().dropped, dropped);
    assert.equal(system.stats().deadLetters, dropped);
  });
}

test("fail refuses what has no room", async () => {
  const { clock, ref, seen, open } = setup("fail");
  for (let n = 0; n < 3; n += 1) await ref.tell("note", n);
  const error = { code: "full", retryable: true, details: { capacity: 3 } };
  await assert.rejects(ref.tell("note", 3), error);
  await assert.rejects(ref.ask("seen"), { code: "full" });
  open();
  await clock.settle();
  assert.deepEqual([seen, ref.info().highWater], [[0, 1, 2], 3]);
});

test("a refusal has no stack, which would cost more than handling", async () => {
  const { ref } = setup("fail");
  for (let n = 0; n < 3; n += 1) await ref.tell("note", n);
  const error: unknown = await ref.tell("note", 3).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof Error);
  assert.doesNotMatch(error.stack ?? "", /\n\s+at /);
});

test("wait lets senders wait in turn, and refuses more of them than there are places", async () => {
  const { clock, ref, seen, open } = setup("wait");
  const queued: number[] = [];
  for (let n = 0; n < 6; n += 1) void ref.tell("note", n).then(() => queued.push(n));
  await assert.rejects(ref.tell("note", 6), { code: "full" });
  assert.deepEqual([queued, ref.info().depth], [[0, 1, 2], 3]);
  open();
  await clock.settle();
  assert.deepEqual([seen, queued], [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]);
});

test("a sender that waits can take its message back", async () => {
  const { clock, ref, seen, open } = setup("wait");
  for (let n = 0; n < 3; n += 1) await ref.tell("note", n);
  const abort = new AbortController();
  const told = ref.tell("note", 3, { signal: abort.signal });
  abort.abort();
  await assert.rejects(told, { code: "cancelled" });
  open();
  await clock.settle();
  assert.deepEqual(seen, [0, 1, 2]);
});

test("senders that wait hear of the end", async () => {
  const { clock, ref } = setup("wait");
  for (let n = 0; n < 3; n += 1) await ref.tell("note", n);
  const told = assert.rejects(ref.tell("note", 3), { code: "unknown-target" });
  const asked = assert.rejects(ref.ask("seen"), { code: "unknown-target" });
  await ref.stop();
  await clock.settle();
  await told;
  await asked;
});

for (const [how, options] of [
  ["cancelled", () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 1);
    return { signal: abort.signal };
  }],
  ["deadline", () => ({ deadlineMs: 10 })],
] as const) {
  test(`senders that give up with ${how} leave their places to others`, async () => {
    const { clock, system, ref, seen, open } = setup("wait");
    for (let n = 0; n < 3; n += 1) await ref.tell("note", n);
    const given = Array.from({ length: 3 }, () => {
      const asked = ref.ask("seen", undefined, options());
      return assert.rejects(asked, { code: how });
    });
    await assert.rejects(ref.ask("seen"), { code: "full" });
    await new Promise((resolve) => setTimeout(resolve, 2));
    await clock.advance(100);
    await Promise.all(given);
    const before = system.stats().deadLetters;
    assert.equal(before, 4);
    const told = [3, 4, 5].map((n) => ref.tell("note", n));
    open();
    await Promise.all(told);
    await clock.settle();
    assert.deepEqual(seen, [0, 1, 2, 3, 4, 5]);
    assert.equal(system.stats().deadLetters, before);
  });
}

test("tells and streams that are withdrawn leave their places to others", async () => {
  const { clock, system, ref, seen, open } = setup("wait");
  for (let n = 0; n < 3; n += 1) await ref.tell("note", n);
  const abort = new AbortController();
  const { signal } = abort;
  const told = [1, 2].map((n) => assert.rejects(ref.tell("note", -n, { signal }), {
    code: "cancelled",
  }));
  const stream = system.find("notes")?.stream("items", undefined, { signal });
  await assert.rejects(ref.tell("note", -3), { code: "full" });
  abort.abort();
  await Promise.all(told);
  await assert.rejects(stream?.next() ?? Promise.resolve(), { code: "cancelled" });
  const kept = [3, 4, 5].map((n) => ref.tell("note", n));
  open();
  await Promise.all(kept);
  await clock.settle();
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5]);
});

test("what was given up at the front of a full mailbox makes room", async () => {
  const { clock, ref, seen, open } = setup("fail");
  const late = Array.from({ length: 3 }, () =>
    assert.rejects(ref.ask("seen", undefined, { deadlineMs: 10 }), { code: "deadline" }));
  await assert.rejects(ref.tell("note", 0), { code: "full" });
  await clock.advance(100);
  await Promise.all(late);
  for (let n = 1; n <= 3; n += 1) await ref.tell("note", n);
  open();
  await clock.settle();
  assert.deepEqual(seen, [1, 2, 3]);
});
