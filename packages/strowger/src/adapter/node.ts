import { connect, type NetConnectOpts } from "node:net";

import { type Dial, type Place, shownPlace } from "../client/line.js";
import { dialWebSocket } from "../client/websocket.js";
import { MessageError } from "../error.js";

export { start } from "./start.js";

/** Number of unsent bytes in a socket above which the line is congested. */
const UNSENT = 1 << 20;

/** Milliseconds of silence before the system probes whether the peer is still alive. */
const KEEP_ALIVE = 15_000;

/** Opens a line to a place through the sockets of Node and Bun. */
export const dial: Dial = (place, events) => {
  if (place.kind === "websocket") return dialWebSocket(place.url, events);
  return new Promise((resolve, reject) => {
    const socket = connect(options(place));
    let why = "the node closed it";
    let isOpen = false;
    let isCongested = false;
    socket.setNoDelay(true);
    socket.on("data", (octets) => events.octets(octets));
    socket.on("drain", () => {
      isCongested = false;
      events.drained();
    });
    socket.on("error", (error) => {
      why = error.message;
    });
    socket.on("close", () => {
      const text = `no node at ${shownPlace(place)}: ${why}`;
      if (isOpen) events.lost(why);
      else reject(new MessageError("unreachable", text));
    });
    socket.on("connect", () => {
      isOpen = true;
      // Detects a peer that has vanished, even if nothing is sent.
      socket.setKeepAlive(true, KEEP_ALIVE);
      resolve({
        send(octets) {
          // The high water mark of the socket is far lower: each batch would delay the next.
          if (!socket.write(octets)) isCongested = socket.writableLength > UNSENT;
          return !isCongested;
        },
        soon: (callback) => process.nextTick(callback),
        close: () => socket.destroy(),
      });
    });
  });
};

function options(place: Exclude<Place, { readonly kind: "websocket" }>): NetConnectOpts {
  return place.kind === "unix"
    ? { path: place.path }
    : { host: place.host, port: place.port, noDelay: true };
}
