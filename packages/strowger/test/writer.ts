// Writes pieces to a file of a node of its own, and kills itself before the last one.
import { files } from "../src/files/index.js";
import { startNode } from "../src/index.js";
import { patient } from "./binary.js";

const [, , binary = "", config = ""] = process.argv;
const node = await startNode({ ...patient, binary, args: ["--port", "0", "--config", config] });
const piece = new Uint8Array(100_000).fill(7);
async function* pieces(): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < 5; n += 1) yield piece;
  process.kill(process.pid, "SIGKILL");
}
await files(node).write("note.txt", pieces());
