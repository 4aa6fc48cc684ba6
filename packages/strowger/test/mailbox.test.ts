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
