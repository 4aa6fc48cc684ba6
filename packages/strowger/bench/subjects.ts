import { dispatch, query, type Ref, spawn, start, stop } from "nact";

import { ActorSystem } from "strowger";

/** A library to measure. Each subject counts handled messages, so that results can be checked. */
export interface Subject {
  readonly name: "strowger" | "nact" | "floor";
  /** Queues a message that adds one to the count. */
  tell(): void;
  /** Adds one and resolves with the count. */
  ask(): Promise<number>;
  /** Passes a token around a ring of ten actors, `hops` times. */
  ring(hops: number): Promise<number>;
  /** Sends a message to each of ten actors; resolves with the number of messages handled. */
  fanOut(): Promise<number>;
  /** Has ten actors send `each` messages to one actor; resolves with the number that it handled. */
  gather(each: number): Promise<number>;
  close(): Promise<void>;
}

const RING = 10;

export function strowger(capacity = 1024): Subject {
  type Counter = { add: { reply: number } };
  const system = new ActorSystem();
  const counter = system.spawn<Counter>("counter", () => {
    let count = 0;
    return { handle: { add: () => (count += 1) } };
  }, { capacity });
  let arrived: (hops: number) => void = () => {};
  let total = 0;
  type Ring = { pass: { payload: number } };
  const ring = Array.from({ length: RING }, (_, at) =>
    system.spawn<Ring>(`ring/${at}`, () => ({
      handle: {
        pass: (left) => {
          if (left === 0) arrived(total);
          else void ring[(at + 1) % RING]?.tell("pass", left - 1);
        },
      },
    })),
  );
  let gathered = 0;
  let wanted = 0;
  let together: (count: number) => void = () => {};
  const sink = system.spawn<Counter>("sink", () => ({
    handle: {
      add: () => {
        gathered += 1;
        if (gathered === wanted) together(gathered);
        return gathered;
      },
    },
  }), { capacity });
  type Source = { send: { payload: number } };
  const sources = Array.from({ length: 10 }, (_, at) =>
    system.spawn<Source>(`source/${at}`, () => ({
      handle: {
        send: (count) => {
          for (let n = 0; n < count; n += 1) void sink.tell("add");
        },
      },
    })),
  );
  let handled = 0;
  let all: (count: number) => void = () => {};
  const leaves = Array.from({ length: 10 }, (_, at) =>
    system.spawn<Counter>(`leaf/${at}`, () => ({
      handle: {
        add: () => {
          handled += 1;
          if (handled === 10) all(handled);
          return handled;
        },
      },
    })),
  );
  return {
    name: "strowger",
    tell: () => void counter.tell("add"),
    ask: () => counter.ask("add"),
    ring: (hops) =>
      new Promise((resolve) => {
        [arrived, total] = [resolve, hops];
        void ring[0]?.tell("pass", hops);
      }),
    fanOut: () =>
      new Promise((resolve) => {
        [handled, all] = [0, resolve];
        for (const leaf of leaves) void leaf.tell("add");
      }),
    gather: (each) =>
      new Promise((resolve) => {
        [gathered, wanted, together] = [0, 10 * each, resolve];
        for (const source of sources) void source.tell("send", each);
      }),
    close: () => system.shutdown(),
  };
}

export function nact(): Subject {
  type Add = { readonly reply: Ref<number> | undefined };
  const system = start();
  let count = 0;
  const counter = spawn(system, (_: undefined, message: Add) => {
    count += 1;
    if (message.reply !== undefined) dispatch(message.reply, count);
    return undefined;
  }, "counter");
  let arrived: (hops: number) => void = () => {};
  let total = 0;
  const ring = Array.from({ length: RING }, (_, at): Ref<number> =>
    spawn(system, (_state: undefined, left: number) => {
      const next = ring[(at + 1) % RING];
      if (left === 0) arrived(total);
      else if (next !== undefined) dispatch(next, left - 1);
      return undefined;
    }, `ring-${at}`),
  );
  let handled = 0;
  let all: (count: number) => void = () => {};
  const leaves = Array.from({ length: 10 }, (_, at) =>
    spawn(system, (_state: undefined, _message: Add) => {
      handled += 1;
      if (handled === 10) all(handled);
      return undefined;
    }, `leaf-${at}`),
  );
  let gathered = 0;
  let wanted = 0;
  let together: (count: number) => void = () => {};
  const sink = spawn(system, (_state: undefined, _message: Add) => {
    gathered += 1;
    if (gathered === wanted) together(gathered);
    return undefined;
  }, "sink");
  const sources = Array.from({ length: 10 }, (_, at) =>
    spawn(system, (_state: undefined, count: number) => {
      for (let n = 0; n < count; n += 1) dispatch(sink, add);
      return undefined;
    }, `source-${at}`),
  );
  const add: Add = { reply: undefined };
  return {
    name: "nact",
    tell: () => dispatch(counter, add),
    ask: () => query(counter, (reply: Ref<number>) => ({ reply }), 5000),
    ring: (hops) =>
      new Promise((resolve) => {
        const [first] = ring;
        [arrived, total] = [resolve, hops];
        if (first !== undefined) dispatch(first, hops);
      }),
    fanOut: () =>
      new Promise((resolve) => {
        [handled, all] = [0, resolve];
        for (const leaf of leaves) dispatch(leaf, add);
      }),
    gather: (each) =>
      new Promise((resolve) => {
        [gathered, wanted, together] = [0, 10 * each, resolve];
        for (const source of sources) dispatch(source, each);
      }),
    close: () => Promise.resolve(stop(system)),
  };
}

/** The cost of the work without actors: a Map, a microtask for each message, a promise. */
export function floor(): Subject {
  let count = 0;
  const handlers = new Map([["add", () => (count += 1)]]);
  const soon = Promise.resolve();
  const handle = (): number => handlers.get("add")?.() ?? -1;
  return {
    name: "floor",
    tell: () => void soon.then(handle),
    ask: () => soon.then(handle),
    async ring(hops) {
      for (let left = hops; left > 0; left -= 1) await soon;
      return hops;
    },
    fanOut: () =>
      new Promise((resolve) => {
        let handled = 0;
        const each = (): void => {
          handled += 1;
          if (handled === 10) resolve(handled);
        };
        for (let at = 0; at < 10; at += 1) void soon.then(each);
      }),
    gather: (each) =>
      new Promise((resolve) => {
        let gathered = 0;
        const sink = (): void => {
          gathered += 1;
          if (gathered === 10 * each) resolve(gathered);
        };
        const source = (): void => {
          for (let n = 0; n < each; n += 1) void soon.then(sink);
        };
        for (let at = 0; at < 10; at += 1) void soon.then(source);
      }),
    close: () => soon,
  };
}
