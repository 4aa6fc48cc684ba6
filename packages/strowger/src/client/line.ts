import { badRequest } from "../error.js";

/** A bidirectional byte stream to a node. */
export interface Line {
  /**
   * Sends bytes, which must not be modified afterwards. Returns `false` if the caller should wait
   * for `drained` before it sends more.
   */
  send(octets: Uint8Array): boolean;
  /** Calls back after the current synchronous run, so that all its output is sent at once. */
  soon(callback: () => void): void;
  /** Closes the line; `lost` may still be called afterwards. */
  close(): void;
}

/** Callbacks of a {@link Line}. */
export interface LineEvents {
  octets(octets: Uint8Array): void;
  /** Called when the line accepts more bytes after `send` returned `false`. */
  drained(): void;
  /** Called when the line is closed or broken. */
  lost(why: string): void;
}

/** The place where a node listens. */
export type Place =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "websocket"; readonly url: string };

/** Opens a line to a place; rejects with a MessageError. */
export type Dial = (place: Place, events: LineEvents) => Promise<Line>;

const FORMS = "a path of a socket, tcp://HOST:PORT, ws://HOST:PORT or wss://HOST:PORT";

/** Parses the place where a node listens. */
export function parsePlace(where: string): Place {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(where) ?? [];
  if (scheme === undefined) {
    if (where === "") throw badRequest(`where is the node? ${FORMS}`);
    return { kind: "unix", path: where };
  }
  const wrong = badRequest(`${JSON.stringify(where)} is no place of a node: it is ${FORMS}`);
  if (!URL.canParse(where)) throw wrong;
  const url = new URL(where);
  // A token in a URL would end up in logs.
  if (url.username !== "" || url.password !== "") throw wrong;
  switch (scheme.toLowerCase()) {
    case "tcp":
      if (url.port === "" || url.hostname === "") throw wrong;
      return { kind: "tcp", host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port) };
    case "ws":
    case "wss":
      return { kind: "websocket", url: where };
    default:
      throw wrong;
  }
}

/** Formats a place for errors. */
export function shownPlace(place: Place): string {
  switch (place.kind) {
    case "unix":
      return place.path;
    case "tcp":
      return `tcp://${place.host}:${place.port}`;
    case "websocket":
      return place.url;
  }
}
