import type { Dial } from "../client/line.js";
import { dialWebSocket } from "../client/websocket.js";
import { MessageError } from "../error.js";

/** Makes a line to a place: a WebSocket, as a browser has no other. */
export const dial: Dial = (place, events) =>
  place.kind === "websocket"
    ? dialWebSocket(place.url, events)
    : Promise.reject(new MessageError("refused", "a browser connects to ws:// and wss:// only"));

/** A browser starts no programs. */
export function start(): Promise<never> {
  return Promise.reject(new MessageError("refused", "a browser starts no node"));
}
