// Prints one JSON row per line, which `cargo xtask bench messages` reads; ids end in _bun under
// Bun. `--quick` measures only briefly, `--only IDS` selects rows, `--except IDS` excludes rows.
import { measure } from "mitata";

import { address, createMessage, parseAddress } from "strowger";

import { client } from "./client.js";
import { creation, patterns, routing } from "./document.js";
import { check, isWanted, quick, type Row, suffix, TELLS } from "./row.js";
import { floor, nact, strowger, type Subject } from "./subjects.js";

/** Number of rounds of a row, in which its subjects take turns. */
const ROUNDS = quick ? 1 : 5;
const MEASURE = quick ? { min_cpu_time: 2e7 } : { min_cpu_time: 3e8 };

function print(id: string, subject: string, value: number, checked: number): void {
  const rounded = Math.round(value * 10) / 10;
  const unit = { value: rounded, unit: "ns", iterations: checked, checked };
  console.log(JSON.stringify({ part: "messages", id: id + suffix, subject, ...unit }));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Measures a row. Its subjects take turns, so that a slow machine slows all of them. */
async function row({ id, works, tail }: Row): Promise<void> {
  if (![id, ...(tail === true ? [`${id}_p99`] : [])].some(isWanted)) return;
  const p50 = new Map<string, number[]>();
  const p99 = new Map<string, number[]>();
  const calls = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [subject, { operations, work }] of works) {
      const counted = (): unknown => {
        calls.set(subject, (calls.get(subject) ?? 0) + operations);
        return work();
      };
      const stats = await measure(counted, MEASURE);
      p50.set(subject, [...(p50.get(subject) ?? []), stats.p50 / operations]);
      p99.set(subject, [...(p99.get(subject) ?? []), stats.p99 / operations]);
    }
  }
  for (const [subject] of works) {
    const checked = calls.get(subject) ?? 0;
    print(id, subject, median(p50.get(subject) ?? []), checked);
    if (tail === true) print(`${id}_p99`, subject, median(p99.get(subject) ?? []), checked);
  }
}

/** Measures queueing alone: the actor handles the messages between rounds, which is not timed. */
async function tells(): Promise<void> {
  if (!isWanted("tell")) return;
  const rounds = new Map<Subject, number[]>();
  for (const subject of subjects) rounds.set(subject, []);
  for (let round = 0; round < (quick ? 200 : 2000); round += 1) {
    for (const [subject, took] of rounds) {
      const count = await subject.ask();
      const begun = performance.now();
      for (let n = 0; n < TELLS; n += 1) subject.tell();
      took.push(((performance.now() - begun) * 1e6) / TELLS);
      check((await subject.ask()) === count + TELLS + 1, "each message is handled once");
    }
  }
  for (const [{ name }, took] of rounds) print("tell", name, median(took), took.length * TELLS);
}

const to = address("tools/files");
let made = 0;
const plain = (pattern: string) => {
  made += 1;
  return { id: `p-${made}`, pattern, to, type: "add", payload: 1 };
};
const subjects = [strowger(), nact(), floor()];
const HOPS = 1000;

function single(id: string, ours: () => void, bare: () => void): Row {
  const works = [["strowger", ours], ["floor", bare]] as const;
  return { id, works: works.map(([name, work]) => [name, { operations: 1, work }]) };
}

function each(
  id: string,
  operations: number,
  work: (subject: Subject) => () => unknown,
): Row {
  const works = subjects.map((subject) => [subject.name, work(subject)] as const);
  return {
    id,
    tail: id === "ask",
    works: works.map(([name, timed]) => [name, { operations, work: timed }]),
  };
}

for (const pattern of ["tell", "ask"] as const) {
  await row(single(
    `create_${pattern}`,
    () => {
      const message = createMessage({ pattern, to, type: "add", payload: 1 });
      check(message.to === to && message.pattern === pattern, "create");
    },
    () => check(plain(pattern).to === to, "create"),
  ));
}
await row(single(
  "address",
  () => check(parseAddress(address("tools/files")).keys.length === 2, "address"),
  () => {
    const keys = `@(${["tools", "files"].join("/")})`.slice(2, -1).split("/");
    check(keys.length === 2, "address");
  },
));
await tells();
await row(each("tell_handled", TELLS, (subject) => async () => {
  const count = await subject.ask();
  for (let n = 0; n < TELLS - 2; n += 1) subject.tell();
  check((await subject.ask()) === count + TELLS - 1, "tell_handled");
}));
await row(each("ask", 1, (subject) => {
  let last = 0;
  return async () => {
    const count = await subject.ask();
    check(count > last, "ask");
    last = count;
  };
}));
const hundred = (subject: Subject) => async () => {
  const asked: Promise<number>[] = [];
  for (let n = 0; n < 100; n += 1) asked.push(subject.ask());
  const answers = await Promise.all(asked);
  check((answers[99] ?? 0) - (answers[0] ?? 0) === 99, "hundred answers");
};
await row(each("ask_100_each", 100, hundred));
await row(each("ring_hop", HOPS, (subject) => async () => {
  check((await subject.ring(HOPS)) === HOPS, "ring_hop");
}));
await row(each("fan_out_10", 1, (subject) => async () => {
  check((await subject.fanOut()) === 10, "fan_out_10");
}));
await row(each("batch_10k", 1, (subject) => async () => {
  for (let batch = 0; batch < 100; batch += 1) await hundred(subject)();
}));
for (const each of creation()) await row(each);
const routes = routing();
for (const each of routes.rows) await row(each);
await routes.close();
for (const each of patterns(subjects)) await row(each);
await Promise.all(subjects.map((subject) => subject.close()));
if (["client_ask", "client_ask_p99", "client_ask_pipelined"].some(isWanted)) await client(row);
