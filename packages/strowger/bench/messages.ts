// Prints one JSON row per line, which `cargo xtask bench messages` reads; ids end in _bun under
// Bun. `--quick` measures only briefly, `--only IDS` selects rows, `--except IDS` excludes rows.
import { address, createMessage, parseAddress } from "strowger";

import { client } from "./client.js";
import { creation, patterns, routing } from "./document.js";
import { measure, percentile } from "./measure.js";
import { check, isWanted, quick, type Row, suffix, TELLS } from "./row.js";
import { floor, nact, strowger, type Subject } from "./subjects.js";

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function print(id: string, subject: string, value: number, checked: number, more = {}): void {
  const unit = { value: rounded(value), unit: "ns", iterations: checked, checked, ...more };
  console.log(JSON.stringify({ part: "messages", id: id + suffix, subject, ...unit }));
}

/** Measures a row, and prints a figure for each subject. */
async function row({ id, works, tail }: Row): Promise<void> {
  if (![id, ...(tail === true ? [`${id}_p99`] : [])].some(isWanted)) return;
  const measured = await measure(works.map(([, work]) => work), tail === true);
  for (const [at, { median, least, spread, p99, calls }] of measured.entries()) {
    const [subject, { operations }] = works[at] ?? ["", { operations: 1 }];
    const checked = calls * operations;
    const more = { least: rounded(least / operations), spread: Math.round(spread * 100) / 100 };
    print(id, subject, median / operations, checked, more);
    if (p99 !== undefined) print(`${id}_p99`, subject, p99 / operations, checked);
  }
}

/** Measures queueing alone: the actor handles the messages between rounds, which is not timed. */
async function tells(): Promise<void> {
  if (!isWanted("tell")) return;
  const rounds = new Map<Subject, number[]>();
  for (const subject of subjects) rounds.set(subject, []);
  for (let round = 0; round < (quick ? 800 : 4000); round += 1) {
    for (const [subject, took] of rounds) {
      const count = await subject.ask();
      const begun = performance.now();
      for (let n = 0; n < TELLS; n += 1) subject.tell();
      took.push(((performance.now() - begun) * 1e6) / TELLS);
      check((await subject.ask()) === count + TELLS + 1, "each message is handled once");
    }
  }
  for (const [{ name }, took] of rounds) {
    // The first quarter warms up.
    const warm = took.slice(took.length / 4);
    const more = { least: rounded(Math.min(...warm)) };
    print("tell", name, percentile(warm, 0.5), warm.length * TELLS, more);
  }
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
