// The tools of a node: files confined to a directory, a stream that is written to a file, and a
// write that is cancelled. Requires the program `strowger` on the PATH, or in STROWGER_BIN.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { MessageError, startNode } from "strowger";
import { files } from "strowger/files";
import { streams } from "strowger/streams";

const folder = mkdtempSync(join(tmpdir(), "strowger-"));
const config = join(folder, "node.toml");
writeFileSync(config, `[[tools.files]]\nroot = "."\n[tools.streams]\nenabled = true\n`);
const node = await startNode({ args: ["--port", "0", "--config", config] });
const work = files(node);
const flow = streams(node);

await work.write("plan.txt", "call back\n");
try {
  await work.read("../../etc/passwd");
} catch (error) {
  if (error instanceof MessageError) console.log(error.code);
}

// The stream is only as fast as the file is written.
await flow.open("news");
const written = work.write("news.txt", flow.follow("news"));
while ((await flow.list())[0]?.readers !== 1);
for (const line of ["one\n", "two\n"]) await flow.put("news", line);
await flow.end("news");
await written;
console.log((await work.readText("news.txt")).trim().replace("\n", " "));

// An agent that gives up: the partial file is removed.
const patience = new AbortController();
async function* endless(): AsyncGenerator<string> {
  for (let n = 0; ; n += 1) {
    if (n === 3) patience.abort();
    yield "more";
  }
}
await work.write("endless.txt", endless(), { signal: patience.signal }).catch(() => {});
const names: string[] = [];
for await (const { name } of work.list()) names.push(name);
console.log(names.filter((name) => name.startsWith("endless")).length);
await node.stop();
rmSync(folder, { recursive: true, force: true });
