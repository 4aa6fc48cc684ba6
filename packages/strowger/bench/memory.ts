// Prints what an idle actor and a message that waits take, as rows of `cargo xtask bench messages`.
// One subject and one thing in each process: `memory.js SUBJECT actors|messages`. Resident memory,
// because Bun's heapUsed does not move; after a collection where there is one to ask for.
import { dispatch, spawn, start } from "nact";

import { ActorSystem } from "strowger";

import { isWanted, suffix } from "./row.js";

const [subject = "strowger", what = "actors"] = process.argv.slice(2);
const MANY = 100_000;
const id = what === "actors" ? "idle_actor" : "queued_message";
if (!isWanted(id)) process.exit(0);

type Counter = { add: { payload: number; reply: number } };

/** Makes many of them, and returns what holds them. */
async function make(): Promise<unknown> {
  if (subject === "strowger") {
    const system = new ActorSystem();
    const spawned = (path: string) =>
      system.spawn<Counter>(path, () => {
        let count = 0;
        return { handle: { add: (by) => (count += by) } };
      }, { capacity: MANY });
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

const before = resident();
const made = await make();
const value = Math.round((resident() - before) / MANY);
const row = { part: "messages", id: id + suffix, subject, value, unit: "bytes" };
console.log(JSON.stringify({ ...row, iterations: MANY, checked: made === undefined ? 0 : MANY }));
process.exit(0);
