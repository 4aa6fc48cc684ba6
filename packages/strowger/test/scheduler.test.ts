import assert from "node:assert/strict";
import { test } from "node:test";

import { Scheduler } from "../src/scheduler.js";
import { VirtualClock } from "../src/testing.js";
import { Alarm, TimerWheel } from "../src/wheel.js";

/** Runs `work` with errors that would be uncaught in a list. */
async function uncaught(work: () => Promise<void>): Promise<unknown[]> {
  const { queueMicrotask } = globalThis;
  const errors: unknown[] = [];
  globalThis.queueMicrotask = (task) =>
    queueMicrotask(() => {
      try {
        task();
      } catch (error) {
        errors.push(error);
      }
    });
  try {
    await work();
  } finally {
    globalThis.queueMicrotask = queueMicrotask;
  }
  return errors;
}

const bug = new Error("a bug");
function thrower(): never {
  throw bug;
}

test("a turn that throws does not stop the scheduler", async () => {
  const errors = await uncaught(async () => {
    const scheduler = new Scheduler();
    let turns = 0;
    scheduler.schedule({ turn: thrower, rest: () => true });
    scheduler.schedule({ turn: () => (turns += 1), rest: () => turns === 3 });
    await new VirtualClock().settle();
    scheduler.schedule({ turn: () => (turns += 1), rest: () => true });
    await new VirtualClock().settle();
    assert.equal(turns, 4);
  });
  assert.deepEqual(errors, [bug]);
});

test("a timer that throws does not stop the wheel", async () => {
  const errors = await uncaught(async () => {
    const clock = new VirtualClock();
    const wheel = new TimerWheel(clock);
    const expired: number[] = [];
    wheel.add(new Alarm(thrower), 10);
    for (const ms of [10, 50]) wheel.add(new Alarm(() => void expired.push(ms)), ms);
    await clock.advance(100);
    assert.deepEqual(expired, [10, 50]);
  });
  assert.deepEqual(errors, [bug]);
});
