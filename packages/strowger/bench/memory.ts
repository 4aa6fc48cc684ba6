// Prints the memory of an idle actor, of a queued message and of a process, as rows of `cargo xtask
// bench messages`. Each process measures one subject and one kind: `memory.js SUBJECT
// actors|messages|process`. It measures resident memory, because Bun's heapUsed does not change,
// after a garbage collection if the runtime lets a program request one.
import { dispatch, spawn, start } from "nact";

import { ActorSystem } from "strowger";

import { check, isWanted, suffix } from "./row.js";
import { nact, strowger } from "./subjects.js";

const [subject = "strowger", what = "actors"] = process.argv.slice(2);
const MANY = 100_000;
const ids = new Map([
  ["actors", "idle_actor"],
  ["messages", "queued_message"],
  ["process", "resident_10k"],
]);
const id = ids.get(what);
if (id === undefined) throw new Error("memory.js SUBJECT actors|messages|process");
if (!isWanted(id)) process.exit(0);

const options = { capacity: MANY };

type Counter = { add: { payload: number; reply: number } };

/** Creates `MANY` actors or messages, and returns an object that keeps them alive. */
async function make(): Promise<unknown> {
  if (subject === "strowger") {
    const system = new ActorSystem();
    const spawned = (path: string) =>
      system.spawn<Counter>(path, () => {
        let count = 0;
        return { handle: { add: (by) => (count += by) } };
      }, options);
    if (what === "messages") {
      const ref = spawned("one");
      for (let n = 0; n < MANY; n += 1) void ref.tell("add", n);
      return ref;
    }
    const refs = Array.from({ length: MANY }, (_, n) => spawned(`many/${n}`));
    for (const ref of refs) await ref.ask("add", 1);
    return refs;
  }
  const system = start();
  const spawned = (name: string) =>
    spawn(system, (count: number = 0, by: number) => count + by, name);
  if (what === "messages") {
    const ref = spawned("one");
    for (let n = 0; n < MANY; n += 1) dispatch(ref, n);
    return ref;
  }
  const refs = Array.from({ length: MANY }, (_, n) => spawned(`many-${n}`));
  for (const ref of refs) dispatch(ref, 1);
  await new Promise<void>((resolve) => setTimeout(resolve, 100));
  return refs;
}

function resident(): number {
  const collect: unknown = Reflect.get(globalThis, "gc");
  const bun: unknown = Reflect.get(globalThis, "Bun");
  if (typeof collect === "function") collect();
  else if (typeof bun === "object" && bun !== null && "gc" in bun && typeof bun.gc === "function") {
    bun.gc(true);
  }
  return process.memoryUsage.rss();
}

function print(value: number, checked: number): void {
  const row = { part: "messages", id: `${id}${suffix}`, subject, value: Math.round(value) };
  console.log(JSON.stringify({ ...row, unit: "bytes", iterations: checked, checked }));
}

if (what === "process") {
  const subjectOf = subject === "nact" ? nact : strowger;
  const counter = subjectOf();
  let last = 0;
  for (let batch = 0; batch < 100; batch += 1) {
    const asked = Array.from({ length: 100 }, () => counter.ask());
    last = (await Promise.all(asked)).at(-1) ?? 0;
  }
  check(last === 10_000, "each is handled once");
  print(resident(), last);
} else {
  // The first batch absorbs the space that the heap reserves for young objects.
  const first = await make();
  const before = resident();
  const second = await make();
  print((resident() - before) / MANY, first === second ? 0 : MANY);
}
process.exit(0);
