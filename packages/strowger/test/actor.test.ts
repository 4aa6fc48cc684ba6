import assert from "node:assert/strict";
import { test } from "node:test";

import { ActorSystem, type DeadLetter, MessageError } from "../src/index.js";
import { VirtualClock } from "../src/testing.js";

type Counter = { add: { payload: number; reply: number }; fail: {}; hold: { reply: string } };

/** A counter that can be blocked in a message. */
function counter(gate: { open: () => void } = { open: () => {} }) {
  return () => {
    let count = 0;
    return {
      handle: {
        add: (by: number) => (count += by),
        fail: () => {
          throw new Error("on purpose");
        },
        hold: () => new Promise<string>((resolve) => (gate.open = () => resolve("held"))),
      },
    };
  };
}

function setup() {
  const clock = new VirtualClock();
  const system = new ActorSystem({ clock });
  const dead: DeadLetter[] = [];
  system.deadLetters.listen((letter) => dead.push(letter));
  return { clock, system, dead, codes: () => dead.map((letter) => letter.code) };
}

test("an ask gets the answer of its message", async () => {
  const { system } = setup();
  const ref = system.spawn<Counter>("counter", counter());
  assert.equal(await ref.ask("add", 2), 2);
  assert.equal(await ref.ask("add", 3), 5);
});

test("messages of one sender are handled in order, one at a time", async () => {
  const { system } = setup();
  const seen: string[] = [];
  const ref = system.spawn<{ note: { payload: number } }>("notes", () => ({
    handle: {
      note: async (n) => {
        seen.push(`begin ${n}`);
        await Promise.resolve();
        seen.push(`end ${n}`);
      },
    },
  }));
  await Promise.all([ref.tell("note", 1), ref.tell("note", 2)]);
  await ref.ask("note", 3);
  assert.deepEqual(seen, ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]);
});

test("an ask without an answer ends at its deadline, and the handler is told", async () => {
  const { clock, system } = setup();
  let signal: AbortSignal | undefined;
  const ref = system.spawn<{ wait: { reply: string } }>("slow", () => ({
    handle: {
      wait: (_, call) => {
        signal = call.signal;
        return new Promise<string>(() => {});
      },
    },
  }));
  const asked = ref.ask("wait", undefined, { deadlineMs: 100 });
  let ended = false;
  const outcome = assert.rejects(asked, { code: "deadline", retryable: true });
  void outcome.then(() => (ended = true));
  await clock.advance(99);
  assert.equal(ended, false);
  assert.equal(signal?.aborted, false);
  await clock.advance(30);
  await outcome;
  assert.equal(signal?.aborted, true);
});

test("an ask that says nothing has the deadline of the system", async () => {
  const { clock, system } = setup();
  const ref = system.spawn<Counter>("counter", counter());
  const outcome = assert.rejects(ref.ask("hold"), { code: "deadline" });
  await clock.advance(5030);
  await outcome;
});

test("a late answer is dropped", async () => {
  const { clock, system } = setup();
  const gate = { open: () => {} };
  const ref = system.spawn<Counter>("counter", counter(gate));
  const outcome = assert.rejects(ref.ask("hold", undefined, { deadlineMs: 10 }));
  await clock.advance(50);
  await outcome;
  gate.open();
  assert.equal(await ref.ask("add", 1), 1);
});

test("a cancelled ask is not handled if it waited", async () => {
  const { clock, system, codes } = setup();
  const gate = { open: () => {} };
  const ref = system.spawn<Counter>("counter", counter(gate));
  const held = ref.ask("hold");
  const abort = new AbortController();
  const asked = ref.ask("add", 7, { signal: abort.signal });
  await clock.settle();
  abort.abort();
  await assert.rejects(asked, { code: "cancelled" });
  gate.open();
  assert.equal(await held, "held");
  assert.equal(await ref.ask("add", 1), 1);
  assert.deepEqual(codes(), ["cancelled"]);
});

test("an ask with a signal that was aborted before is not queued", async () => {
  const { system } = setup();
  const ref = system.spawn<Counter>("counter", counter());
  const asked = ref.ask("add", 1, { signal: AbortSignal.abort() });
  await assert.rejects(asked, { code: "cancelled" });
  assert.equal(ref.info().depth, 0);
});

test("a message error answers and leaves the actor as it is", async () => {
  const { system } = setup();
  const ref = system.spawn<{ pay: { reply: number } }>("till", () => ({
    handle: {
      pay: () => {
        throw new MessageError("refused", "no money", { details: { short: 3 } });
      },
    },
  }));
  await assert.rejects(ref.ask("pay"), { code: "refused", details: { short: 3 } });
  assert.equal(ref.info().restarts, 0);
});

test("an unknown type is a bad request that names what there is", async () => {
  const { system } = setup();
  system.spawn<Counter>("counter", counter());
  const ref = system.find("counter");
  for (const type of ["sub", "constructor", "__proto__"]) {
    const asked = ref?.ask(type, undefined);
    assert.ok(asked !== undefined);
    await assert.rejects(asked, { code: "bad-request", message: /it takes add, fail, hold/ });
  }
});

test("nobody at a path is an unknown target and a dead letter", async () => {
  const { system, codes } = setup();
  const ref = system.spawn<Counter>("counter", counter());
  assert.deepEqual(await ref.stop(), { reason: "stopped" });
  await assert.rejects(ref.tell("add", 1), { code: "unknown-target" });
  await assert.rejects(ref.ask("add", 1), { code: "unknown-target" });
  void ref.tell("add", 2);
  assert.deepEqual(codes(), ["unknown-target", "unknown-target", "unknown-target"]);
});

test("stop overtakes what waits, and what waits is not handled", async () => {
  const { clock, system, codes } = setup();
  const gate = { open: () => {} };
  const ref = system.spawn<Counter>("counter", counter(gate));
  const held = ref.ask("hold");
  await clock.settle();
  const waiting = assert.rejects(ref.ask("add", 1), { code: "unknown-target" });
  const stopped = ref.stop();
  gate.open();
  assert.equal(await held, "held");
  await waiting;
  assert.deepEqual(await stopped, { reason: "stopped" });
  assert.deepEqual(codes(), ["unknown-target"]);
});

test("an actor that does not end in time is killed", async () => {
  const { clock, system } = setup();
  const ref = system.spawn<Counter>("counter", counter(), { shutdownMs: 100 });
  const held = assert.rejects(ref.ask("hold"), { code: "failed" });
  await clock.settle();
  const stopped = ref.stop();
  await clock.advance(150);
  assert.deepEqual(await stopped, { reason: "killed" });
  await held;
});

test("a path has one actor, and is free when that has ended", async () => {
  const { system } = setup();
  const ref = system.spawn<Counter>("counter", counter());
  assert.throws(() => system.spawn<Counter>("counter", counter()), { code: "refused" });
  assert.throws(() => system.spawn<Counter>("../counter", counter()), { code: "bad-request" });
  await ref.stop();
  assert.ok(system.spawn<Counter>("counter", counter()).isAlive);
});

test("actors that talk for ever leave turns to the event loop", async () => {
  const system = new ActorSystem();
  let goesOn = true;
  const ref = system.spawn<{ again: {} }>("loop", (context) => ({
    handle: {
      again: () => {
        if (goesOn) void context.self.tell("again");
      },
    },
  }));
  void ref.tell("again");
  await new Promise<void>((resolve) => setImmediate(resolve));
  goesOn = false;
  await system.shutdown();
});

test("asks in a loop leave turns to the event loop", async () => {
  const system = new ActorSystem();
  const ref = system.spawn<Counter>("counter", counter());
  let hadTurn = false;
  setImmediate(() => (hadTurn = true));
  for (let asks = 0; !hadTurn; asks += 1) {
    assert.ok(asks < 100_000);
    await ref.ask("add", 1);
  }
  await system.shutdown();
});

test("statistics count, and have percentiles of what was asked", async () => {
  const system = new ActorSystem();
  const ref = system.spawn<Counter>("counter", counter());
  for (let asks = 0; asks < 160; asks += 1) await ref.ask("add", 1);
  const { actors, depth, deadLetters, askNs } = system.stats();
  assert.deepEqual([actors, depth, deadLetters, askNs.count], [1, 0, 0, 10]);
  assert.ok(askNs.p50 > 0 && askNs.p50 <= askNs.p99 && askNs.p99 <= askNs.max);
  assert.equal(ref.info().handled, 160);
  await system.shutdown();
  assert.throws(() => system.spawn<Counter>("late", counter()), { code: "refused" });
});

/** Hands a value to an actor that its types would not let it return. */
function untyped(value: unknown): never;
function untyped(value: unknown): unknown {
  return value;
}

function thrower(): never {
  throw new Error("hostile");
}

type Then = (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void;

/** Results that throw where the system looks at them, after the handler has returned. */
const HOSTILE: Readonly<Record<string, () => unknown>> = {
  "a then that throws": () => ({ then: thrower }),
  "a then getter that throws": () => Object.defineProperty({}, "then", { get: thrower }),
  "a promise whose constructor throws": () =>
    Object.defineProperty(Promise.resolve(1), "constructor", { get: thrower }),
  "a promise whose own then throws": () => Object.assign(Promise.resolve(1), { then: thrower }),
  "a proxy that throws": () => new Proxy({}, { has: thrower }),
  "an error without a text": () => {
    throw Object.create(null);
  },
  "an error whose prototype cannot be read": () => {
    throw new Proxy({}, { getPrototypeOf: thrower });
  },
};

for (const [what, result] of Object.entries(HOSTILE)) {
  test(`a handler that gives ${what} fails, and the others go on`, async () => {
    const { clock, system } = setup();
    const other = system.spawn<Counter>("counter", counter());
    const ref = system.spawn<{ go: { reply: number }; ok: { reply: number } }>("hostile", () => ({
      handle: { go: () => untyped(result()), ok: () => 1 },
    }));
    const asked = assert.rejects(ref.ask("go"), { code: "failed" });
    void ref.tell("go");
    await clock.advance(100);
    await asked;
    assert.deepEqual([await other.ask("add", 2), await ref.ask("ok")], [2, 1]);
    assert.equal(ref.info().restarts, 2);
  });

  test(`an actor whose make gives ${what} ends, and the others go on`, async () => {
    const { clock, system } = setup();
    const other = system.spawn<Counter>("counter", counter());
    const ref = system.spawn<Counter>("hostile", () => untyped(result()), { restart: "temporary" });
    await clock.settle();
    assert.equal((await ref.ended).reason, "failed");
    assert.equal(await other.ask("add", 2), 2);
  });
}

test("a handler fails if its result throws when it is looked at as a stream", async () => {
  const { system } = setup();
  const result = new Proxy({}, { has: (_, key) => key !== "then" && thrower() });
  const ref = system.spawn<{ go: { reply: object }; later: { reply: object } }>("hostile", () => ({
    handle: { go: () => result, later: async () => result },
  }));
  await assert.rejects(ref.ask("go"), { code: "failed", message: /hostile/ });
  await assert.rejects(ref.ask("later"), { code: "failed", message: /hostile/ });
});

test("a type that is no text is a bad request", async () => {
  const { clock, system } = setup();
  system.spawn<Counter>("counter", counter());
  const ref = system.find("counter");
  assert.ok(ref !== undefined);
  for (const type of [Symbol("add"), { toString: thrower }, undefined]) {
    await assert.rejects(ref.ask(untyped(type), 1), { code: "bad-request" });
    await assert.rejects(ref.tell(untyped(type), 1), { code: "bad-request" });
    await assert.rejects(ref.stream(untyped(type), 1).next(), { code: "bad-request" });
  }
  await clock.advance(6000);
  assert.equal(await ref.ask("add", 1), 1);
});

const ONCE: Readonly<Record<string, (value: unknown) => Then>> = {
  "calls both callbacks": (value) => (resolve, reject) => {
    resolve(value);
    reject(new Error("too late"));
  },
  "calls back twice": (value) => (resolve) => {
    resolve(value);
    resolve(untyped(0));
  },
  "throws after it has called back": (value) => (resolve) => {
    resolve(value);
    thrower();
  },
};

for (const [what, then] of Object.entries(ONCE)) {
  test(`a thenable that ${what} counts once`, async () => {
    const { system } = setup();
    const seen: string[] = [];
    const handle = {
      go: (n: number) => untyped({ then: (yes: never, no: never) => {
        seen.push(`${n}`);
        then(n)(yes, no);
      } }),
    };
    const made = untyped({ then: then({ handle }) });
    const ref = system.spawn<{ go: { payload: number; reply: number } }>("once", () => made);
    const asked = [ref.ask("go", 1), ref.ask("go", 2), ref.ask("go", 3)];
    seen.push("asked");
    assert.deepEqual(await Promise.all(asked), [1, 2, 3]);
    assert.deepEqual(seen, ["asked", "1", "2", "3"]);
    assert.deepEqual([ref.info().handled, ref.info().restarts], [3, 0]);
  });
}

test("asks and messages of one sender are handled in order, over many turns", async () => {
  const { system } = setup();
  const seen: number[] = [];
  const note = (n: number): number => seen.push(n);
  type Notes = { note: { payload: number; reply: number } };
  const ref = system.spawn<Notes>("notes", () => ({ handle: { note } }), { capacity: 10_000 });
  const answered: number[] = [];
  const asked: Promise<unknown>[] = [];
  for (let n = 0; n < 5000; n += 1) {
    if (n % 3 === 0) void ref.tell("note", n);
    else asked.push(ref.ask("note", n).then(() => answered.push(n)));
  }
  await Promise.all(asked);
  const all = Array.from({ length: 5000 }, (_, n) => n);
  assert.deepEqual(seen, all);
  assert.deepEqual(answered, all.filter((n) => n % 3 !== 0));
});

test("an ask from a handler is answered, also by the actor itself", async () => {
  const { system } = setup();
  const other = system.spawn<Counter>("counter", counter());
  type Asks = { go: { reply: number }; own: { reply: number } };
  let own = Promise.resolve(0);
  const ref = system.spawn<Asks>("asks", ({ self }) => ({
    handle: {
      go: () => {
        own = self.ask("own");
        return other.ask("add", 2);
      },
      own: () => 3,
    },
  }));
  assert.equal(await ref.ask("go"), 2);
  assert.equal(await own, 3);
});

test("an ask that is cancelled or dropped at once is not handled", async () => {
  const { system } = setup();
  const options = { capacity: 1, overflow: "keep-latest" } as const;
  const ref = system.spawn<Counter>("counter", counter(), options);
  const abort = new AbortController();
  const cancelled = assert.rejects(ref.ask("add", 1, { signal: abort.signal }), {
    code: "cancelled",
  });
  abort.abort();
  await cancelled;
  const dropped = assert.rejects(ref.ask("add", 2), { code: "full" });
  void ref.tell("add", 4);
  await dropped;
  assert.equal(await ref.ask("add", 8), 12);
});

test("an ask that waits for more than a turn has its deadline", async () => {
  const { clock, system } = setup();
  const gate = { open: () => {} };
  const ref = system.spawn<Counter>("counter", counter(gate));
  const held = ref.ask("hold", undefined, { deadlineMs: 1000 });
  const late = assert.rejects(ref.ask("add", 1, { deadlineMs: 100 }), { code: "deadline" });
  const kept = ref.ask("add", 2, { deadlineMs: 1000 });
  await clock.advance(150);
  await late;
  gate.open();
  assert.deepEqual([await held, await kept], ["held", 2]);
  // Nothing expires after its answer.
  await clock.advance(2000);
  assert.equal(await ref.ask("add", 0), 2);
});
