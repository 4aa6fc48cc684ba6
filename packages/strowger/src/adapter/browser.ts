import type { Dial } from "../client/line.js";
import { dialWebSocket } from "../client/websocket.js";
import { MessageError } from "../error.js";

/** Opens a line to a place, which has to be a WebSocket: a browser has no other sockets. */
export const dial: Dial = (place, events) =>
  place.kind === "websocket"
    ? dialWebSocket(place.url, events)
    : Promise.reject(new MessageError("refused", "a browser connects to ws:// and wss:// only"));

/** Rejects, because a browser cannot start programs. */
export function start(): Promise<never> {
  return Promise.reject(new MessageError("refused", "a browser starts no node"));
}
