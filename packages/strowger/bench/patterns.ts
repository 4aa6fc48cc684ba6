// The cost of common patterns: `npm run bench:patterns`.
import { bench, do_not_optimize, group, run } from "mitata";

import { type ActorRef, ActorSystem, address, createMessage } from "strowger";

import { check, suffix } from "./row.js";
import { strowger } from "./subjects.js";

const subject = strowger(16_384);
const system = new ActorSystem();
const many = (count: number, work: (n: number) => unknown): unknown[] =>
  Array.from({ length: count }, (_, n) => work(n));

/** Tells `count` messages, and waits until all of them are handled. */
async function tell(count: number): Promise<void> {
  const before = await subject.ask();
  for (let n = 0; n < count; n += 1) subject.tell();
  check((await subject.ask()) === before + count + 1, "each is handled once");
}

async function ask(count: number): Promise<void> {
  await Promise.all(many(count, () => subject.ask()));
}

async function batched(count: number): Promise<void> {
  for (let n = 0; n < count; n += 100) await ask(100);
}

type Link = { pass: { payload: number; reply: number } };
const chain: ActorRef<Link>[] = Array.from({ length: 10 }, (_, at) =>
  system.spawn<Link>(`chain/${at}`, () => ({
    handle: { pass: (n) => chain[at + 1]?.ask("pass", n + 1) ?? n + 1 },
  })),
);

type Sum = { add: { payload: number }; sum: { reply: number } };
const aggregate = system.spawn<Sum>("aggregate", () => {
  let sum = 0;
  return { handle: { add: (n) => void (sum += n), sum: () => sum } };
});

group("patterns", () => {
  bench("concurrent: 10 tell operations", () => tell(10));
  bench("concurrent: 100 tell operations", () => tell(100));
  bench("concurrent: 10 ask operations", () => ask(10));
  bench("concurrent: 100 ask operations", () => ask(100));
  bench("mixed: 50 tell + 50 ask operations", async () => {
    for (let n = 0; n < 50; n += 1) subject.tell();
    await ask(50);
  });
  bench("throughput: 1k messages (sequential)", async () => {
    for (let n = 0; n < 1000; n += 1) await subject.ask();
  });
  bench("throughput: 1k messages (batched)", () => batched(1000));
  bench("throughput: 10k messages (batched)", () => batched(10_000));
  bench("actor-to-actor: 10 chained messages", async () => {
    check((await chain[0]?.ask("pass", 0)) === 10, "the chain");
  });
  bench("fan-out: 1 to 10 actors", () => subject.fanOut());
  bench("aggregation: 100 messages to 1 actor", async () => {
    const before = await aggregate.ask("sum");
    for (let n = 0; n < 100; n += 1) void aggregate.tell("add", 1);
    check((await aggregate.ask("sum")) === before + 100, "the sum");
  });
  bench("memory: create 1k messages (no send)", () => {
    const to = address("nobody");
    const make = (payload: number) => createMessage({ pattern: "tell", to, type: "n", payload });
    do_not_optimize(many(1000, make));
  });
});
await run();

const before = process.memoryUsage();
await batched(10_000);
const after = process.memoryUsage();
const mib = (octets: number): string => `${(octets / 2 ** 20).toFixed(1)} MiB`;
console.log(`memory over 10k messages${suffix}: resident ${mib(before.rss)} to ${mib(after.rss)},`
  + ` heap ${mib(before.heapUsed)} to ${mib(after.heapUsed)}`);
await Promise.all([subject.close(), system.shutdown()]);
