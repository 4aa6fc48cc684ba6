import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type Actor,
  ActorSystem,
  type Exit,
  type LocalRef,
  type SpawnOptions,
  type Trouble,
} from "../src/index.js";
import { VirtualClock } from "../src/testing.js";
import { written } from "./written.js";

type Fragile = { add: { payload: number; reply: number }; fail: {} };

function setup() {
  const clock = new VirtualClock();
  return { clock, system: new ActorSystem({ clock }) };
}

function fragile(exits: Exit[] = []) {
  return () => {
    let count = 0;
    return {
      handle: {
        add: (by: number) => (count += by),
        fail: () => {
          throw new Error("on purpose");
        },
      },
      postStop: (exit: Exit) => void exits.push(exit),
    };
  };
}

test("a failure fails the ask, and the next incarnation begins anew", async () => {
  const { clock, system } = setup();
  const exits: Exit[] = [];
  const ref = system.spawn<Fragile>("fragile", fragile(exits));
  await ref.ask("add", 5);
  await assert.rejects(ref.ask("fail"), { code: "failed", message: /on purpose/ });
  await clock.settle();
  assert.equal(await ref.ask("add", 1), 1);
  assert.deepEqual([ref.info().restarts, exits[0]?.reason], [1, "failed"]);
});

test("a failure loses nothing that waits", async () => {
  const { clock, system } = setup();
  const ref = system.spawn<Fragile>("fragile", fragile());
  void ref.tell("fail");
  const asked = [ref.ask("add", 1), ref.ask("add", 2)];
  await clock.settle();
  assert.deepEqual(await Promise.all(asked), [1, 3]);
});

test("restarts after the first wait longer and longer", async () => {
  const { clock, system } = setup();
  const backoff = { initialMs: 100, maxMs: 150 };
  const ref = system.spawn<Fragile>("fragile", fragile(), { backoff });
  for (const [restarts, pause] of [[1, 0], [2, 100], [3, 150], [4, 150]] as const) {
    void ref.tell("fail");
    await clock.settle();
    if (pause > 0) {
      assert.equal(ref.info().state, "restarting");
      await clock.advance(pause - 1);
      assert.equal(ref.info().restarts, restarts - 1);
      await clock.advance(26);
    }
    assert.deepEqual([ref.info().restarts, ref.info().state], [restarts, "running"]);
  }
});

test("an actor that fails too often ends", async () => {
  const { clock, system } = setup();
  const intensity = { restarts: 2, withinMs: 1000 };
  const options = { intensity, backoff: { initialMs: 0, maxMs: 0 } };
  const ref = system.spawn<Fragile>("fragile", fragile(), options);
  for (let times = 0; times < 3; times += 1) void ref.tell("fail");
  await clock.settle();
  const { reason, error } = await ref.ended;
  assert.equal(reason, "intensity");
  assert.match(String(error), /on purpose/);
});

test("failures that are long ago do not count", async () => {
  const { clock, system } = setup();
  const ref = system.spawn<Fragile>("fragile", fragile(), {
    intensity: { restarts: 1, withinMs: 1000 },
  });
  for (let times = 1; times <= 3; times += 1) {
    void ref.tell("fail");
    await clock.advance(1001);
    assert.equal(ref.info().restarts, times);
  }
});

test("a temporary actor is not started again, a permanent one always", async () => {
  const { clock, system } = setup();
  const once = system.spawn<Fragile>("once", fragile(), { restart: "temporary" });
  void once.tell("fail");
  assert.equal((await once.ended).reason, "failed");
  const leaving = ({ stop }: { readonly stop: () => void }) => ({ handle: { leave: stop } });
  const always = system.spawn<{ leave: {} }>("always", leaving, { restart: "permanent" });
  await always.ask("leave");
  await clock.settle();
  assert.deepEqual([always.info().restarts, always.isAlive], [1, true]);
});

test("children end before their parent, and a stop reaches all", async () => {
  const { system } = setup();
  const ended: string[] = [];
  const leaf = (name: string) => () => ({ handle: {}, postStop: () => void ended.push(name) });
  const parent = system.spawn("parent", (context) => {
    context.spawn("a", leaf("a"));
    context.spawn("b", leaf("b"));
    return leaf("parent")();
  });
  assert.ok(system.find("parent/a")?.isAlive);
  await parent.stop();
  assert.deepEqual(ended, ["b", "a", "parent"]);
  assert.equal(system.stats().actors, 0);
});

test("a child that fails too often fails its parent, which starts it again", async () => {
  const { clock, system } = setup();
  const parent = system.spawn("parent", (context) => {
    context.spawn<Fragile>("child", fragile(), { intensity: { restarts: 0, withinMs: 1000 } });
    return { handle: {} };
  });
  void system.find("parent/child")?.tell("fail", undefined);
  await clock.settle();
  assert.equal(parent.info().restarts, 1);
  assert.equal(parent.info().children, 1);
  assert.equal(await system.find("parent/child")?.ask("add", 4), 4);
});

test("a parent that its child takes down fails what it was asked", async () => {
  const { clock, system } = setup();
  const parent = system.spawn<{ hold: {} }>("parent", (context) => {
    context.spawn<Fragile>("child", fragile(), { intensity: { restarts: 0, withinMs: 1000 } });
    return { handle: { hold: () => new Promise<void>(() => {}) } };
  });
  const asked = assert.rejects(parent.ask("hold"), { code: "failed" });
  await clock.settle();
  void system.find("parent/child")?.tell("fail", undefined);
  await clock.settle();
  await asked;
  assert.equal(parent.info().state, "running");
});

test("messages wait until an actor that starts slowly has started", async () => {
  const { clock, system } = setup();
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const ref = system.spawn<{ get: { reply: number } }>("slow", async () => {
    await opened;
    return { handle: { get: () => 7 } };
  });
  const asked = ref.ask("get");
  await clock.settle();
  assert.deepEqual([ref.info().state, ref.info().depth], ["starting", 1]);
  open();
  assert.equal(await asked, 7);
});

test("what a postStop throws is told, and ends nothing else", async () => {
  const { system } = setup();
  const troubles: Trouble[] = [];
  system.troubles.listen((trouble) => troubles.push(trouble));
  const error = new Error("ouch");
  const ref = system.spawn("sore", () => ({
    handle: {},
    postStop: () => {
      throw error;
    },
  }));
  await ref.stop();
  const trouble = { source: "actor", address: "@(sore)", incarnation: 1 } as const;
  assert.deepEqual(troubles, [{ ...trouble, during: "postStop", error }]);
});

/** Runs a program that fails, and returns its troubles in short, and what it wrote. */
async function told(
  program: (system: ActorSystem, clock: VirtualClock) => void,
): Promise<{ readonly troubles: readonly string[]; readonly lines: readonly string[] }> {
  const { clock, system } = setup();
  const troubles: string[] = [];
  system.troubles.listen((trouble) => {
    assert.equal(trouble.source, "actor");
    const { address, incarnation, during, error } = trouble;
    troubles.push(`${address} ${incarnation} ${during}: ${Error.prototype.toString.call(error)}`);
  });
  const lines = await written(async () => {
    program(system, clock);
    await clock.advance(60_000);
  });
  return { troubles, lines };
}

const often = {
  intensity: { restarts: 2, withinMs: 1000 },
  backoff: { initialMs: 0, maxMs: 0 },
};

test("each failure of a crash loop is a trouble, and giving up is a line", async () => {
  const { troubles, lines } = await told((system) => {
    const ref = system.spawn<Fragile>("fragile", fragile(), often);
    for (let times = 0; times < 3; times += 1) void ref.tell("fail");
  });
  const trouble = (n: number): string => `@(fragile) ${n} handler: Error: on purpose`;
  assert.deepEqual(troubles, [1, 2, 3].map(trouble));
  const line = "strowger: @(fragile) gave up after 2 restarts within 1000 ms: on purpose";
  assert.deepEqual(lines, [line]);
});

for (const [how, make] of [
  ["throws", () => {
    throw new Error("on purpose");
  }],
  ["rejects", () => Promise.reject(new Error("on purpose"))],
] as const) {
  test(`a make that ${how} is a trouble each time, and giving up is a line`, async () => {
    const { troubles, lines } = await told((system) => void system.spawn<{}>("bad", make, often));
    const trouble = (n: number): string => `@(bad) ${n} make: Error: on purpose`;
    assert.deepEqual(troubles, [1, 2, 3].map(trouble));
    assert.equal(lines.length, 1);
  });
}

test("a make that returns no actor fails", async () => {
  const { troubles } = await told((system) => {
    const make: unknown = () => undefined;
    Reflect.apply(system.spawn, system, ["bad", make, { restart: "temporary" }]);
  });
  assert.deepEqual(troubles, ["@(bad) 1 make: TypeError: bad: make returned no actor"]);
});

test("a child that gives up is a trouble of its parent too", async () => {
  const { troubles, lines } = await told((system) => {
    system.spawn<{}>("parent", (context) => {
      const child = context.spawn<Fragile>("child", fragile(), {
        intensity: { restarts: 0, withinMs: 1000 },
      });
      void child.tell("fail");
      return { handle: {} };
    }, { intensity: { restarts: 1, withinMs: 1000 }, backoff: often.backoff });
  });
  const both = (n: number): string[] => [
    "@(parent/child) 1 handler: Error: on purpose",
    `@(parent) ${n} child: Error: on purpose`,
  ];
  assert.deepEqual(troubles, [...both(1), ...both(2)]);
  assert.deepEqual(lines.map((line) => line.split(" ")[1]), [
    "@(parent/child)", "@(parent/child)", "@(parent)",
  ]);
});

test("failures of what has ended already are troubles", async () => {
  const { troubles } = await told((system, clock) => {
    const reject = (ms: number) => () =>
      new Promise<never>((_, no) => clock.after(ms, () => no(new Error("late"))));
    void system.spawn<{}>("make", reject(10)).stop();
    const postStop = reject(100);
    void system.spawn<{}>("stop", () => ({ handle: {}, postStop }), { shutdownMs: 10 }).stop();
  });
  assert.deepEqual(troubles, ["@(make) 1 make: Error: late", "@(stop) 1 postStop: Error: late"]);
});

type Stuck = { hold: {} };
const stuck = (ended: Exit[] = []) => () => ({
  handle: { hold: () => new Promise<void>(() => {}) },
  postStop: (exit: Exit) => {
    ended.push(exit);
    return new Promise<void>(() => {});
  },
});

/** Starts a parent with children and grandchildren that do not end by themselves. */
async function stuckFamily(shutdownMs: number) {
  const { clock, system } = setup();
  const ended: Exit[] = [];
  const parent = system.spawn<Stuck>("parent", (context) => {
    for (const key of ["a", "b", "c", "d"]) {
      const child = context.spawn<Stuck>(key, ({ spawn }) => {
        void spawn<Stuck>("below", stuck(ended)).tell("hold");
        return stuck(ended)();
      });
      void child.tell("hold");
    }
    return stuck(ended)();
  }, { shutdownMs });
  await clock.settle();
  return { clock, system, parent, ended };
}

/** Returns the time in virtual milliseconds until a promise is settled. */
async function took(clock: VirtualClock, promise: Promise<unknown>): Promise<number> {
  const begun = clock.now();
  let isOver = false;
  void promise.then(() => (isOver = true));
  await clock.settle();
  while (!isOver) await clock.advance(10);
  return clock.now() - begun;
}

test("a parent ends within its limit, with children that do not end", async () => {
  const { clock, system, parent, ended } = await stuckFamily(1000);
  const ms = await took(clock, parent.stop());
  assert.ok(ms >= 1000 && ms < 1100, `${ms} ms`);
  assert.equal(system.stats().actors, 0);
  // All of them were stopped, each with its children before it.
  assert.equal(ended.length, 9);
  assert.deepEqual([...new Set(ended.map(({ reason }) => reason))], ["killed", "stopped"]);
});

test("a child that is stopping already ends within the limit of its parent", async () => {
  const { clock, system, parent } = await stuckFamily(1000);
  void system.find("parent/a")?.stop();
  await clock.advance(100);
  const ms = await took(clock, parent.stop());
  assert.ok(ms < 1100, `${ms} ms`);
  assert.equal(system.stats().actors, 0);
});

test("a child with a limit of its own ends within that", async () => {
  const { clock, system } = setup();
  const parent = system.spawn<{}>("parent", (context) => {
    void context.spawn<Stuck>("child", stuck(), { shutdownMs: 100 }).tell("hold");
    return { handle: {} };
  });
  await clock.settle();
  const ms = await took(clock, parent.stop());
  assert.ok(ms >= 100 && ms < 200, `${ms} ms`);
});

test("a restart of an actor whose children do not end is within its limit", async () => {
  const { clock, system } = setup();
  const parent = system.spawn<Fragile>("parent", (context) => {
    for (const key of ["a", "b", "c"]) void context.spawn<Stuck>(key, stuck()).tell("hold");
    return fragile()();
  }, { shutdownMs: 1000 });
  void parent.tell("fail");
  const ms = await took(clock, parent.ask("add", 1, { deadlineMs: 60_000 }));
  assert.ok(ms < 1100, `${ms} ms`);
});

test("a shutdown is within the limits of those without a parent, children in order", async () => {
  const { clock, system, ended } = await stuckFamily(1000);
  const order: string[] = [];
  system.spawn<{}>("other", (context) => {
    for (const key of ["a", "b"]) {
      context.spawn<{}>(key, () => ({ handle: {}, postStop: () => void order.push(key) }));
    }
    return { handle: {}, postStop: () => void order.push("other") };
  });
  const ms = await took(clock, system.shutdown());
  assert.ok(ms < 1100, `${ms} ms`);
  assert.deepEqual([order, ended.length], [["b", "a", "other"], 9]);
});

type Parent = { start: { payload: string } };

/** Starts a parent whose children record each start and end. */
async function family(strategy: "one-for-one" | "one-for-all" | "rest-for-one") {
  const { clock, system } = setup();
  const seen: string[] = [];
  const children = new Map<string, LocalRef<Fragile>>();
  const options = new Map<string, SpawnOptions>();
  const parent = system.spawn<Parent>("parent", (context) => ({
    handle: {
      start: (key) => {
        const make = (): Actor<Fragile> => {
          seen.push(`+${key}`);
          return { ...fragile()(), postStop: (exit) => void seen.push(`-${key} ${exit.reason}`) };
        };
        children.set(key, context.spawn<Fragile>(key, make, options.get(key)));
      },
    },
  }), { strategy });
  const start = async (key: string, how: SpawnOptions = {}): Promise<LocalRef<Fragile>> => {
    options.set(key, how);
    await parent.ask("start", key);
    const child = children.get(key);
    assert.ok(child !== undefined);
    return child;
  };
  return { clock, parent, start, seen };
}

for (const [strategy, begun] of [
  ["one-for-one", ["-b failed", "+b"]],
  ["one-for-all", ["-b failed", "-c stopped", "-a stopped", "+a", "+b", "+c"]],
  ["rest-for-one", ["-b failed", "-c stopped", "+b", "+c"]],
] as const) {
  test(`${strategy} begins anew what it says, in the order of spawning`, async () => {
    const { clock, parent, start, seen } = await family(strategy);
    const [a, b, c] = [await start("a"), await start("b"), await start("c")];
    for (const child of [a, b, c]) await child.ask("add", 5);
    seen.length = 0;
    await assert.rejects(b.ask("fail"), { code: "failed" });
    await clock.settle();
    assert.deepEqual(seen, begun);
    const sums = await Promise.all([a, b, c].map((child) => child.ask("add", 1)));
    const isNew = (key: string): boolean => begun.some((each) => each === `+${key}`);
    assert.deepEqual(sums, ["a", "b", "c"].map((key) => (isNew(key) ? 1 : 6)));
    assert.equal(parent.info().restarts, 0);
  });
}

test("a temporary child that falls with another does not come back", async () => {
  const { clock, start } = await family("one-for-all");
  const [a, b] = [await start("a"), await start("b", { restart: "temporary" })];
  await assert.rejects(a.ask("fail"), { code: "failed" });
  await clock.settle();
  assert.deepEqual(await b.ended, { reason: "stopped" });
  assert.equal(await a.ask("add", 1), 1);
});

test("what a child was at when another took it down is failed, the rest is kept", async () => {
  const { clock, system } = setup();
  type Pair = { hold: { reply: string }; add: { payload: number; reply: number }; fail: {} };
  const make = (): Actor<Pair> => ({
    handle: { ...fragile()().handle, hold: () => new Promise<string>(() => {}) },
  });
  const pair: LocalRef<Pair>[] = [];
  system.spawn<{}>("parent", (context) => {
    for (const key of ["a", "b"]) pair.push(context.spawn<Pair>(key, make));
    return { handle: {} };
  }, { strategy: "one-for-all" });
  const [a, b] = pair;
  assert.ok(a !== undefined && b !== undefined);
  const held = assert.rejects(b.ask("hold"), { code: "failed", message: /beside it failed/ });
  const waits = b.ask("add", 3);
  await clock.settle();
  void a.tell("fail");
  await clock.settle();
  await held;
  assert.equal(await waits, 3);
});
