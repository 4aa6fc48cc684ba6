// An open loop: asks at a fixed rate, independent of the answers, each timed from when it was due.
// `npm run stress -- SECONDS RATE`; by default 60 seconds at 50 000 asks per second.
import { strowger } from "./subjects.js";
import { Histogram } from "../src/histogram.js";

const [seconds = 60, rate = 50_000] = process.argv.slice(2).map(Number);
if (!(seconds > 0 && rate > 0)) throw new Error("npm run stress -- SECONDS RATE");

// Room for the messages of one second, so that a pause of the machine shows as latency.
const subject = strowger(rate);
const latency = new Histogram();
const begun = performance.now();
const total = Math.floor(seconds * rate);
let sent = 0;
let answered = 0;
let failed = 0;

function ask(due: number): void {
  subject.ask().then(
    () => {
      answered += 1;
      latency.record((performance.now() - due) * 1e6);
    },
    () => (failed += 1),
  );
}

while (sent < total) {
  const until = Math.min(total, Math.floor(((performance.now() - begun) * rate) / 1000));
  for (; sent < until; sent += 1) ask(begun + (sent * 1000) / rate);
  await new Promise<void>((resolve) => setImmediate(resolve));
}
while (answered + failed < sent) await new Promise<void>((resolve) => setImmediate(resolve));
await subject.close();

const { p50, p90, p99, p999, max } = latency.percentiles();
const took = (performance.now() - begun) / 1000;
console.log(`asked ${sent}, answered ${answered}, failed ${failed}, in ${took.toFixed(1)} s`);
for (const [name, ns] of Object.entries({ p50, p90, p99, p999, max })) {
  console.log(`${name.padEnd(5)} ${(ns / 1000).toFixed(1).padStart(10)} us`);
}
console.log("latency of answers, from when each question was due:");
const buckets = latency.buckets();
const most = Math.max(...buckets.map(({ count }) => count));
for (const { below, count } of buckets) {
  const bar = "#".repeat(Math.ceil((count / most) * 50));
  console.log(`< ${(below / 1000).toFixed(1).padStart(10)} us ${String(count).padStart(9)} ${bar}`);
}
console.log(`resident ${(process.memoryUsage.rss() / 2 ** 20).toFixed(0)} MiB`);
if (failed > 0) process.exitCode = 1;
