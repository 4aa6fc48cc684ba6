// Prints one JSON row a line, as `cargo xtask bench` reads them; ids end in _bun under Bun.
import { measure } from "mitata";

import { address, createMessage, parseAddress } from "strowger";

import { floor, nact, strowger, type Subject } from "./subjects.js";

const suffix = "bun" in process.versions ? "_bun" : "";
const TELLS = 512;
const HOPS = 1000;

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`wrong result: ${what}`);
}

function print(id: string, subject: string, value: number, operations: number): void {
  const row = {
    part: "messages",
    id: id + suffix,
    subject,
    value: Math.round(value * 10) / 10,
    unit: "ns",
    iterations: operations,
    checked: operations,
  };
  console.log(JSON.stringify(row));
}

/** Times work that checks its own result; `operations` of them are one call. */
async function row(
  id: string,
  subject: string,
  operations: number,
  work: () => void | Promise<void>,
  each = operations,
): Promise<void> {
  let calls = 0;
  const counted = (): void | Promise<void> => {
    calls += 1;
    return work();
  };
  const stats = await measure(counted);
  print(id, subject, stats.p50 / each, calls * operations);
}

/** Queueing alone: the actor handles between the rounds, outside of what is timed. */
async function tell(subject: Subject): Promise<void> {
  const rounds: number[] = [];
  let count = await subject.ask();
  for (let round = 0; round < 2000; round += 1) {
    const begun = performance.now();
    for (let n = 0; n < TELLS; n += 1) subject.tell();
    rounds.push(((performance.now() - begun) * 1e6) / TELLS);
    const after = await subject.ask();
    check(after === count + TELLS + 1, "every message that was told is handled once");
    count = after;
  }
  rounds.sort((a, b) => a - b);
  print("tell", subject.name, rounds[rounds.length / 2] ?? 0, rounds.length * TELLS);
}

async function all(subject: Subject): Promise<void> {
  const { name } = subject;
  await tell(subject);
  let count = await subject.ask();
  await row("tell_handled", name, TELLS, async () => {
    for (let n = 0; n < TELLS; n += 1) subject.tell();
    const after = await subject.ask();
    check(after === count + TELLS + 1, "tell_handled");
    count = after;
  });
  await row("ask", name, 1, async () => {
    count += 1;
    check((await subject.ask()) === count, "ask");
  });
  const hundred = async (): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => subject.ask()));
    for (const answer of answers) check(answer === (count += 1), "ask_100_each");
  };
  await row("ask_100_each", name, 100, hundred);
  await row("ring_hop", name, HOPS, async () => {
    check((await subject.ring(HOPS)) === HOPS, "ring_hop");
  });
  await row("fan_out_10", name, 1, async () => {
    check((await subject.fanOut()) === 10, "fan_out_10");
  });
  await row("batch_10k", name, 10_000, async () => {
    for (let batch = 0; batch < 100; batch += 1) await hundred();
  }, 1);
  await subject.close();
}

const to = address("tools/files");
let made = 0;
const plain = (pattern: string) => {
  made += 1;
  return { id: `p-${made}`, pattern, to, type: "add", payload: 1 };
};
for (const pattern of ["tell", "ask"] as const) {
  await row(`create_${pattern}`, "strowger", 1, () => {
    const message = createMessage({ pattern, to, type: "add", payload: 1 });
    check(message.to === to && message.pattern === pattern, "create");
  });
  await row(`create_${pattern}`, "floor", 1, () => check(plain(pattern).to === to, "create"));
}
await row("address", "strowger", 1, () => {
  check(parseAddress(address("tools/files")).keys.length === 2, "address");
});
await row("address", "floor", 1, () => {
  check(`@(${["tools", "files"].join("/")})`.slice(2, -1).split("/").length === 2, "address");
});
for (const make of [strowger, nact, floor]) await all(make());
