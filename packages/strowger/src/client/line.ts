import { badRequest } from "../error.js";

/** Octets both ways to a node. */
export interface Line {
  /** Sends octets, which must not change any more; false asks for none until `drained`. */
  send(octets: Uint8Array): boolean;
  /** Calls back when what runs now has run, so that all of it is sent at once. */
  soon(callback: () => void): void;
  /** Ends it; `lost` may be called after it. */
  close(): void;
}

/** Who hears of a line. */
export interface LineEvents {
  octets(octets: Uint8Array): void;
  /** What was sent is on its way. */
  drained(): void;
  /** Nothing comes any more. */
  lost(why: string): void;
}

/** Where a node listens. */
export type Place =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "websocket"; readonly url: string };

/** Makes a line to a place; rejects with a MessageError. */
export type Dial = (place: Place, events: LineEvents) => Promise<Line>;

const FORMS = "a path of a socket, tcp://HOST:PORT, ws://HOST:PORT or wss://HOST:PORT";

/** Reads where a node listens. */
export function parsePlace(where: string): Place {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(where) ?? [];
  if (scheme === undefined) {
    if (where === "") throw badRequest(`where is the node? ${FORMS}`);
    return { kind: "unix", path: where };
  }
  const wrong = badRequest(`${JSON.stringify(where)} is no place of a node: it is ${FORMS}`);
  if (!URL.canParse(where)) throw wrong;
  const url = new URL(where);
  // A token in a URL would be in every log.
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

/** The place as text, for errors. */
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
