// Starts the node that is named, kills it, and has nothing more to do.
import { startNode } from "../src/index.js";
import { patient } from "./binary.js";

const [, , binary = ""] = process.argv;
const node = await startNode({ ...patient, binary, args: ["--port", "0"] });
process.kill(node.pid, "SIGKILL");
console.log(await node.exited);
