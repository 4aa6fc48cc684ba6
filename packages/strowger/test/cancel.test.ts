import assert from "node:assert/strict";
import { test } from "node:test";

import { type ActorRef, ActorSystem, type Call, type DeadLetter } from "../src/index.js";
import { VirtualClock } from "../src/testing.js";
import { Peer, silent } from "./peer.js";

type Slow = {
  hold: { payload: number; reply: void };
  note: { payload: number };
  items: { item: number };
};

/** Starts an actor of capacity 1 that holds its first message, and whose calls can be looked at. */
function local() {
  const clock = new VirtualClock();
  const system = new ActorSystem({ clock });
  const calls: Call[] = [];
  const actor: ActorRef<Slow> = system.spawn<Slow>("slow", () => ({
    handle: {
      hold: (_, call) => {
        calls.push(call);
        return new Promise<void>(() => {});
      },
      note: (n, call) => {
        assert.ok(n);
        calls.push(call);
      },
      items: () => [1].values(),
    },
  }), { capacity: 100 });
  const letters: DeadLetter[] = [];
  system.deadLetters.listen((letter) => letters.push(letter));
  return { clock, actor, calls, letters };
}

async function remote() {
  const peer = new Peer(silent);
  const node = await peer.connect();
  return { peer, actor: node.actor<Slow>("slow") };
}

/** Returns a controller that counts the listeners of its signal. */
function counted() {
  const abort = new AbortController();
  const { signal } = abort;
  let listeners = 0;
  let most = 0;
  signal.addEventListener = (...values: Parameters<AbortSignal["addEventListener"]>): void => {
    most = Math.max(most, (listeners += 1));
    AbortSignal.prototype.addEventListener.apply(signal, values);
  };
  signal.removeEventListener = (
    ...values: Parameters<AbortSignal["removeEventListener"]>
  ): void => {
    listeners -= 1;
    AbortSignal.prototype.removeEventListener.apply(signal, values);
  };
  return { abort, signal, listeners: () => listeners, most: () => most };
}

const reason = new Error("the user left");

for (const [where, start] of [["in process", local], ["in a node", remote]] as const) {
  test(`many messages share a signal, and its reason is their cause, ${where}`, async () => {
    const { actor } = await start();
    const { abort, signal, most } = counted();
    const cancelled = { code: "cancelled", cause: reason };
    const all = Array.from({ length: 20 }, (_, n) => [
      assert.rejects(actor.ask("hold", n, { signal }), cancelled),
      assert.rejects(async () => {
        for await (const _ of actor.stream("items", undefined, { signal }));
      }, cancelled),
    ]);
    await new VirtualClock().settle();
    abort.abort(reason);
    await Promise.all(all.flat());
    assert.equal(most(), 1);
  });

  test(`a tell with an aborted signal is not sent, ${where}`, async () => {
    const { actor, ...facts } = await start();
    const signal = AbortSignal.abort(reason);
    await assert.rejects(actor.tell("note", 1, { signal }), { code: "cancelled", cause: reason });
    await new VirtualClock().settle();
    if ("peer" in facts) {
      assert.deepEqual(facts.peer.line.frames, []);
    } else {
      assert.deepEqual(facts.calls, []);
      assert.deepEqual(facts.letters.map(({ code }) => code), ["cancelled"]);
    }
  });
}

test("a signal keeps no listener of messages that have ended", async () => {
  const { actor } = local();
  const { abort, signal, listeners } = counted();
  for (let n = 1; n <= 3; n += 1) await actor.tell("note", n, { signal });
  for await (const _ of actor.stream("items", undefined, { signal }));
  assert.equal(listeners(), 0);
  const asked = assert.rejects(actor.ask("hold", 1, { signal, deadlineMs: 60_000 }), {
    code: "cancelled",
  });
  assert.equal(listeners(), 1);
  abort.abort();
  await asked;
});

test("the handler learns why its caller gave up, also if it asks late", async () => {
  for (const isLate of [false, true]) {
    const { clock, actor, calls } = local();
    const abort = new AbortController();
    const asked = assert.rejects(actor.ask("hold", 1, { signal: abort.signal }));
    await clock.settle();
    if (!isLate) assert.equal(calls[0]?.signal.aborted, false);
    abort.abort(reason);
    await asked;
    const why: unknown = calls[0]?.signal.reason;
    assert.ok(why instanceof Error);
    assert.equal(why.cause, reason);
  }
});

test("a tell that waits for room has the reason as its cause", async () => {
  const { clock, actor } = local();
  for (let n = 0; n < 101; n += 1) {
    void actor.ask("hold", n, { deadlineMs: 60_000 }).catch(() => {});
    await clock.settle();
  }
  const abort = new AbortController();
  const told = Array.from({ length: 20 }, () => actor.tell("note", 1, { signal: abort.signal }));
  abort.abort(reason);
  for (const each of told) await assert.rejects(each, { code: "cancelled", cause: reason });
});
