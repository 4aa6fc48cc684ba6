// Untrusted code in the sandbox of a node: it reads a file and writes another, calls a function of
// this process, and a second run is cancelled. Requires the program `strowger` on the PATH, or in
// STROWGER_BIN.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startNode } from "strowger";
import { code, CodeError } from "strowger/code";
import { files } from "strowger/files";
import { programs } from "strowger/programs";

const folder = mkdtempSync(join(tmpdir(), "strowger-"));
const config = join(folder, "node.toml");
const granted = `
[[tools.files]]
root = "."
[tools.code]
enabled = true
[tools.code.limits]
time = "60s"
deadline = "60s"
[tools.programs]
enabled = true
`;
writeFileSync(config, granted);
const readyMs = 240_000;
const node = await startNode({ readyMs, args: ["--port", "0", "--config", config] });
const work = files(node);
const sandbox = code(node);

// The code has no access to files. It is granted two messages of the files actor, and a function of
// this process.
await work.write("calls.csv", "Almon,120\nEmma,80\nAlmon,40\n");
const report = `
type Call = { name: string; seconds: number };
const calls: Call[] = (await fns.read({ path: args.from })).trim().split("\\n")
  .map((line) => line.split(",")).map(([name, seconds]) => ({ name, seconds: Number(seconds) }));
const sums = new Map<string, number>();
for (const { name, seconds } of calls) sums.set(name, (sums.get(name) ?? 0) + seconds);
const lines = await Promise.all([...sums].map(async ([name, seconds]) =>
  name + " owes " + await fns.price(seconds)));
await fns.write({ path: args.to, text: lines.join("\\n") });
console.log(calls.length + " calls");
lines.length`;
const { value, output } = await sandbox.execute(report, {
  language: "ts",
  args: { from: "calls.csv", to: "bill.txt" },
  functions: {
    read: { to: "@(tools/files)", type: "read" },
    write: { to: "@(tools/files)", type: "write" },
    price: (seconds) => Number(seconds) * 2,
  },
});
console.log(output[0]?.text, "for", value);
console.log((await work.readText("bill.txt")).replace("\n", ", "));

// Anything not granted is undefined, and a granted message still follows the rules of its actor.
for (const source of ["fetch('http://192.0.2.1')", "await fns.read({ path: '../secret' })"]) {
  const functions = { read: { to: "@(tools/files)", type: "read" } };
  await sandbox.execute(source, { functions }).catch((error: unknown) => {
    if (error instanceof CodeError) console.log(error.reason, error.thrown?.name);
  });
}

// Aborting the signal ends the run, even in an endless loop.
const patience = new AbortController();
const endless = sandbox.execute("console.log('round and round'); for (;;);", {
  signal: patience.signal,
  onOutput: () => patience.abort(),
});
await endless.catch((error: unknown) => {
  if (error instanceof Error) console.log(error.message.includes("cancel"));
});
while ((await sandbox.usage()).running > 0);

// A program is code that the node keeps, together with its state.
const desk = programs(node);
await desk.publish("counter", "state.n ??= 0; function handle(by) { return state.n += by }");
await desk.call("counter", 40);
console.log(await desk.call("counter", 2));
await node.stop();
rmSync(folder, { recursive: true, force: true });
