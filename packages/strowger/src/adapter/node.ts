import { connect, type NetConnectOpts } from "node:net";

import { type Dial, type Place, shownPlace } from "../client/line.js";
import { dialWebSocket } from "../client/websocket.js";
import { MessageError } from "../error.js";

export { start } from "./start.js";

/** Octets that may wait in the socket. */
const UNSENT = 1 << 20;

/** Milliseconds of silence before the system asks whether the other host is there. */
const KEEP_ALIVE = 15_000;

/** Makes a line to a place: sockets on Node and Bun. */
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
      // A host that has vanished is found out, though nothing is sent.
      socket.setKeepAlive(true, KEEP_ALIVE);
      resolve({
        send(octets) {
          // Its own mark is far lower: one batch would stop the next.
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
