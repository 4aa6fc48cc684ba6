// Gives back what it gets on a socket: what a question to another process costs at least.
import { createServer } from "node:net";

const [path] = process.argv.slice(2);
createServer((socket) => socket.on("data", (octets) => socket.write(octets))).listen(path, () => {
  process.send?.("ready");
});
