import assert from "node:assert/strict";

import {
  type ActorRef,
  type AnyProtocol,
  type ErrorCode,
  MessageError,
  type TopicReader,
} from "../src/index.js";
import type { Program } from "./program.js";
import { list, text, vectors } from "./vectors.js";

/** The environment of a case. Its actors may be shared with the previous case. */
export interface World {
  readonly actor: ActorRef<Program>;
  /** The same program with room for two messages, which rejects further messages. */
  readonly small: ActorRef<Program>;
  /** Subscribes to the values of the message `publish`. */
  subscribe(): TopicReader<unknown>;
  /** Returns the actor at a path, as seen by a caller that does not know its types. */
  untyped(path: string): ActorRef<AnyProtocol>;
  /** The path of `actor`. */
  readonly path: string;
}

export interface Case {
  readonly name: string;
  run(world: World): Promise<void>;
}

const LONG = 60_000;

/** Repeats a check until it holds, limited only by the timeout of the test. */
async function eventually(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * Marks a promise that is awaited later. A case that fails first, because its node is gone, must
 * not leave an unhandled rejection.
 */
function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

async function all(items: AsyncIterable<number>): Promise<number[]> {
  const got: number[] = [];
  for await (const item of items) got.push(item);
  return got;
}

/** Returns the code of a MessageError; throws any other error again. */
function codeOf(thrown: unknown): string {
  if (thrown instanceof MessageError) return thrown.code;
  throw thrown;
}

const count = (n: number): number[] => Array.from({ length: n }, (_, at) => at);

const VALUES = [
  null, true, 0, -1.5, 9_007_199_254_740_991, 1e300, "", "text", "ä€😀\u0000\n\"", [], {},
  [1, [2, [3]]], { a: { b: null }, "": [false] }, "long ".repeat(4000),
];

const CODES: readonly ErrorCode[] = [
  "unknown-target", "bad-request", "full", "deadline", "cancelled", "refused", "failed",
];

const cases: readonly Case[] = [
  {
    name: "an ask gets the answer of its message",
    async run({ actor }) {
      for (const value of VALUES) assert.deepEqual(await actor.ask("echo", value), value);
    },
  },
  {
    name: "octets are given back as octets",
    async run({ actor }) {
      const octets = Uint8Array.from(count(256));
      assert.deepEqual(await actor.ask("echo", octets), octets);
    },
  },
  {
    name: "a hundred asks at once get each its own answer",
    async run({ actor }) {
      const asked = count(100).map((n) => actor.ask("echo", n));
      assert.deepEqual(await Promise.all(asked), count(100));
    },
  },
  {
    name: "messages of one sender are handled in order",
    async run({ actor }) {
      const before = await actor.ask("sum");
      const told = count(100).map((n) => actor.tell("add", n));
      const answers = await Promise.all(count(3).map(() => actor.ask("add", 1)));
      await Promise.all(told);
      const sum = before + 4950;
      assert.deepEqual(answers, [sum + 1, sum + 2, sum + 3]);
    },
  },
  {
    name: "a tell is queued before it resolves",
    async run({ actor }) {
      const before = await actor.ask("sum");
      await actor.tell("add", 5);
      assert.equal(await actor.ask("sum"), before + 5);
    },
  },
  {
    name: "nobody at a path is an unknown target",
    async run({ untyped }) {
      const nobody = untyped("nobody/here");
      await assert.rejects(nobody.ask("echo", 1), { code: "unknown-target", retryable: false });
      await assert.rejects(nobody.tell("echo", 1), { code: "unknown-target" });
      await assert.rejects(nobody.stream("numbers", 1).next(), { code: "unknown-target" });
    },
  },
  {
    name: "an unknown type is a bad request that names what there is",
    async run({ untyped, path }) {
      const actor = untyped(path);
      for (const type of ["ech", "constructor", "__proto__"]) {
        const asked = actor.ask(type, 1);
        await assert.rejects(asked, { code: "bad-request", message: /echo/ });
      }
    },
  },
  {
    name: "a stream of what is no stream is a bad request",
    async run({ untyped, path }) {
      await assert.rejects(untyped(path).stream("sum", undefined).next(), { code: "bad-request" });
    },
  },
  {
    name: "an ask of a stream is a bad request",
    async run({ actor, untyped, path }) {
      const numbers = { from: 0, to: null };
      const asked = untyped(path).ask("numbers", numbers, { deadlineMs: LONG });
      await assert.rejects(asked, { code: "bad-request", message: /numbers .*stream/ });
      await eventually(async () => (await actor.ask("active")) === 0);
    },
  },
  {
    name: "an error keeps its code, message, and details",
    async run({ actor }) {
      for (const code of CODES) {
        const error = { code, message: `it is ${code}`, retryable: true, details: { n: [1] } };
        await assert.rejects(actor.ask("fail", error), error);
      }
      const bare = { code: "refused", message: "no", retryable: false } as const;
      await assert.rejects(actor.ask("fail", bare), { ...bare, details: undefined });
    },
  },
  {
    name: "a refusal leaves the actor as it is",
    async run({ actor }) {
      const before = await actor.ask("add", 1);
      const error = { code: "refused", message: "no", retryable: false } as const;
      await assert.rejects(actor.ask("fail", error));
      assert.equal(await actor.ask("sum"), before);
    },
  },
  {
    name: "an ask without an answer ends at its deadline, and the handler is told",
    async run({ actor }) {
      const before = await actor.ask("abandoned");
      // An ask that expires before its handler begins is not handled: ask again.
      await eventually(async () => {
        const asked = actor.ask("wait", { ms: LONG }, { deadlineMs: 30 });
        await assert.rejects(asked, { code: "deadline", retryable: true });
        return (await actor.ask("abandoned")) > before;
      });
    },
  },
  {
    name: "a cancelled ask ends at once, and the handler is told",
    async run({ actor }) {
      const before = await actor.ask("abandoned");
      const abort = new AbortController();
      const asked = actor.ask("wait", { ms: LONG }, { signal: abort.signal, deadlineMs: LONG });
      const ended = later(assert.rejects(asked, { code: "cancelled" }));
      // The handler may not have begun, and is then not told: wait for an ask that is queued behind
      // it.
      const behind = later(actor.ask("echo", "behind", { deadlineMs: LONG }));
      abort.abort();
      await ended;
      assert.equal(await behind, "behind");
      const after = await actor.ask("abandoned");
      assert.ok(after === before || after === before + 1);
    },
  },
  {
    name: "an ask that was cancelled before is not handled",
    async run({ actor }) {
      const before = await actor.ask("sum");
      const asked = actor.ask("add", 7, { signal: AbortSignal.abort() });
      await assert.rejects(asked, { code: "cancelled" });
      assert.equal(await actor.ask("sum"), before);
    },
  },
  {
    name: "what waits behind a question that nobody waits for any more is handled",
    async run({ actor }) {
      const held = later(assert.rejects(actor.ask("wait", { ms: LONG }, { deadlineMs: 30 })));
      const behind = count(10).map((n) => actor.ask("echo", n));
      assert.deepEqual(await Promise.all(behind), count(10));
      await held;
    },
  },
  {
    name: "a crash fails the ask, and the next incarnation begins anew",
    async run({ actor }) {
      await actor.ask("add", 5);
      await assert.rejects(actor.ask("crash"), { code: "failed", retryable: false });
      assert.equal(await actor.ask("add", 1), 1);
    },
  },
  {
    name: "a crash loses nothing that waits",
    async run({ actor }) {
      const told = actor.tell("crash");
      const asked = later(Promise.all([actor.ask("add", 1), actor.ask("add", 2)]));
      await told;
      assert.deepEqual(await asked, [1, 3]);
    },
  },
  {
    name: "a mailbox without room refuses, and takes again when there is some",
    async run({ small }) {
      const abort = new AbortController();
      const how = { signal: abort.signal, deadlineMs: LONG };
      const asked = small.ask("wait", { ms: LONG }, how);
      const held = later(assert.rejects(asked, { code: "cancelled" }));
      const told = await Promise.allSettled(count(10).map((n) => small.tell("add", n)));
      const refused = told.filter((each) => each.status === "rejected");
      assert.ok(refused.length >= 7, `${refused.length} were refused`);
      for (const { reason } of refused) {
        assert.deepEqual([reason.code, reason.retryable], ["full", true]);
      }
      abort.abort();
      await held;
      await eventually(async () => {
        const got: unknown = await small.ask("echo", 1).catch(codeOf);
        assert.ok(got === 1 || got === "full", `it answers ${String(got)}`);
        return got === 1;
      });
    },
  },
  {
    name: "a stream gives all its items in order, and ends",
    async run({ actor }) {
      for (const window of [1, 2, 5, 64, 1000]) {
        const items = actor.stream("numbers", { from: 0, to: 200 }, { window });
        assert.deepEqual(await all(items), count(200));
      }
      assert.deepEqual(await all(actor.stream("numbers", { from: 3, to: 3 })), []);
    },
  },
  {
    name: "streams of one actor go side by side with its messages",
    async run({ actor }) {
      const endless = actor.stream("numbers", { from: 0, to: null }, { window: 2 });
      const other = actor.stream("numbers", { from: 100, to: null }, { window: 2 });
      for (const n of count(10)) {
        assert.equal((await endless.next()).value, n);
        assert.equal((await other.next()).value, 100 + n);
        assert.equal(await actor.ask("echo", n), n);
      }
      await endless.return?.();
      await other.return?.();
    },
  },
  {
    name: "a reader that stops stops the producer",
    async run({ actor }) {
      for await (const n of actor.stream("numbers", { from: 0, to: null })) if (n === 3) break;
      await eventually(async () => (await actor.ask("active")) === 0);
    },
  },
  {
    name: "a cancelled stream ends with what came before, and stops the producer",
    async run({ actor }) {
      const abort = new AbortController();
      const how = { signal: abort.signal, window: 4 };
      const items = actor.stream("numbers", { from: 0, to: null }, how);
      assert.equal((await items.next()).value, 0);
      abort.abort();
      const rest: unknown = await all(items).catch(codeOf);
      assert.equal(rest, "cancelled");
      await eventually(async () => (await actor.ask("active")) === 0);
    },
  },
  {
    name: "a stream ends at its deadline, and stops the producer",
    async run({ actor }) {
      const items = actor.stream("numbers", { from: 0, to: null }, { window: 1, deadlineMs: 30 });
      await assert.rejects(all(items), { code: "deadline" });
      await eventually(async () => (await actor.ask("active")) === 0);
    },
  },
  {
    name: "a crash ends the streams of its incarnation",
    async run({ actor }) {
      const items = actor.stream("numbers", { from: 0, to: null }, { window: 1 });
      assert.equal((await items.next()).value, 0);
      await assert.rejects(actor.ask("crash"), { code: "failed" });
      await assert.rejects(all(items), { code: "failed" });
      assert.equal(await actor.ask("echo", 1), 1);
    },
  },
  {
    name: "a topic gives each reader what is published from then on",
    async run({ actor, subscribe }) {
      const readers = [subscribe(), subscribe()];
      const first = readers.map((reader) => reader.next());
      let isHeard = false;
      void later(Promise.all(first).then(() => (isHeard = true)));
      let published = 0;
      await eventually(async () => {
        await actor.tell("publish", (published += 1));
        await actor.ask("echo", published);
        return isHeard;
      });
      for (const [n, reader] of readers.entries()) {
        const begun = await first[n];
        assert.ok(typeof begun?.value === "number");
        if (begun.value < published) assert.equal((await reader.next()).value, begun.value + 1);
        await reader.return?.();
        assert.deepEqual(await reader.next(), { done: true, value: undefined });
      }
    },
  },
];

/** Cases that destroy the environment they run in. */
const lastCases: readonly Case[] = [
  {
    name: "an actor that has ended is an unknown target",
    async run({ actor }) {
      const items = actor.stream("numbers", { from: 0, to: null }, { window: 1 });
      assert.equal((await items.next()).value, 0);
      await actor.tell("end");
      await eventually(async () => {
        const got: unknown = await actor.ask("echo", 1).catch(codeOf);
        assert.ok(got === 1 || got === "unknown-target", `it answers ${String(got)}`);
        return got === "unknown-target";
      });
      await assert.rejects(actor.tell("add", 1), { code: "unknown-target" });
      await assert.rejects(all(items), { code: "failed" });
    },
  },
];

/** All cases in order. After the last one, the environment is not usable. */
export const suite: readonly Case[] = [...cases, ...lastCases];

/** Fails unless each case in the list of conformance cases was run and passed. */
export function assertComplete(ran: readonly string[], over: string): void {
  const names = list(vectors("conformance"), "cases").map(({ name }) => text(name));
  assert.deepEqual(ran, names);
  console.log(`conformance: ${ran.length} cases ${over}`);
}
