// Starts the given node, kills it, and has nothing else to keep the process alive.
import { startNode } from "../src/index.js";
import { patient } from "./binary.js";

const [, , binary = ""] = process.argv;
const node = await startNode({ ...patient, binary, args: ["--port", "0"] });
process.kill(node.pid, "SIGKILL");
console.log(await node.exited);
