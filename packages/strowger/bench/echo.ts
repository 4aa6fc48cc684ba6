// Echoes what it receives on a socket: the minimum cost of an ask to another process.
import { createServer } from "node:net";

const [path] = process.argv.slice(2);
createServer((socket) => socket.on("data", (octets) => socket.write(octets))).listen(path, () => {
  process.send?.("ready");
});
