import { MessageError } from "../error.js";
import type { Line, LineEvents } from "./line.js";

/** The parts of the WebSocket class of browsers, Node and Bun that a line needs. */
interface Socket {
  binaryType: string;
  readonly bufferedAmount: number;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null;
  onerror: (() => void) | null;
  send(octets: Uint8Array): void;
  close(): void;
}

/** Number of unsent bytes in a socket above which the line is congested. */
const UNSENT = 1 << 20;
/** Milliseconds between checks of `bufferedAmount`; a WebSocket has no event for it. */
const LOOK = 4;

const MISSING = "this runtime has no WebSocket: Node has one from version 22 on, and Node 20 with"
  + " --experimental-websocket; unix sockets and tcp:// need none";

/** Opens a line through a WebSocket. */
export function dialWebSocket(url: string, events: LineEvents): Promise<Line> {
  const make: unknown = Reflect.get(globalThis, "WebSocket");
  if (!isSocketClass(make)) return Promise.reject(new MessageError("refused", MISSING));
  const socket = new make(url);
  socket.binaryType = "arraybuffer";
  let isOpen = false;
  return new Promise((resolve, reject) => {
    socket.onclose = (event) => {
      const why = event.reason === "" ? `closed with ${event.code}` : event.reason;
      if (isOpen) events.lost(why);
      else reject(new MessageError("unreachable", `no node at ${url}: ${why}`));
    };
    // The `close` event that follows has the reason.
    socket.onerror = () => {};
    socket.onmessage = ({ data }) => {
      if (data instanceof ArrayBuffer) events.octets(new Uint8Array(data));
      else events.lost("a message of text came, where frames are octets");
    };
    socket.onopen = () => {
      isOpen = true;
      resolve(lineOf(socket, events));
    };
  });
}

function lineOf(socket: Socket, events: LineEvents): Line {
  const look = (): void => {
    if (socket.bufferedAmount > UNSENT) setTimeout(look, LOOK);
    else events.drained();
  };
  return {
    send(octets) {
      socket.send(octets);
      if (socket.bufferedAmount <= UNSENT) return true;
      setTimeout(look, LOOK);
      return false;
    },
    soon: queueMicrotask,
    close: () => socket.close(),
  };
}

function isSocketClass(value: unknown): value is new (url: string) => Socket {
  return typeof value === "function";
}
