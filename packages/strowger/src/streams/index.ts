import { holding } from "../base64.js";
import { MessageError } from "../error.js";
import type { ActorRef, AskOptions, StreamOptions } from "../protocol.js";

/** A piece of a stream: a text, or octets of any meaning. */
export type Piece = string | Uint8Array;

/** A stream that has not ended. */
export interface StreamInfo {
  readonly name: string;
  readonly readers: number;
  readonly pieces: number;
  readonly octets: number;
  readonly disconnected: number;
  readonly waiting: number;
}

type Named = { readonly stream: string };
type Given = Named & { readonly text?: string; readonly base64?: string };

/** The messages of a streams actor. */
export type StreamsProtocol = {
  open: { payload: Named & { readonly replay?: number } };
  put: { payload: Given; reply: { readers: number } };
  end: { payload: Named };
  fail: { payload: Named & { readonly message: string } };
  follow: { payload: Named & { readonly window?: number }; item: Piece };
  list: { reply: readonly StreamInfo[] };
};

/** Where the actor is: a connection to a node. */
export interface StreamsPlace {
  actor(at: string): ActorRef<StreamsProtocol>;
}

/** Streams by name: from a producer to many readers. */
export interface Streams {
  /** The actor itself. */
  readonly actor: ActorRef<StreamsProtocol>;
  /** Begins a stream. */
  open(stream: string, options?: AskOptions & { readonly replay?: number }): Promise<void>;
  /** Sends a piece; resolves with the number of readers, once all of them have room. */
  put(stream: string, piece: Piece, options?: AskOptions): Promise<number>;
  /** Ends it in order. */
  end(stream: string, options?: AskOptions): Promise<void>;
  /** Ends it with an error, which readers get behind what was sent. */
  fail(stream: string, message: string, options?: AskOptions): Promise<void>;
  /**
   * Begins a stream, sends what comes as fast as the slowest reader takes it, and ends it: with an
   * error if what comes does.
   */
  send(
    stream: string,
    pieces: AsyncIterable<Piece> | Iterable<Piece>,
    options?: AskOptions & { readonly replay?: number },
  ): Promise<void>;
  /** Reads: the last pieces, and all that come. A loop that is left is a reader that has gone. */
  follow(stream: string, options?: StreamOptions): AsyncIterableIterator<Piece>;
  list(options?: AskOptions): Promise<readonly StreamInfo[]>;
}

/** How long a piece may wait for the slowest reader: longer than a node lets one stand still. */
const PATIENCE = 60_000;

/**
 * The streams of a node, at `@(tools/streams)`.
 *
 * @example
 * for await (const piece of streams(node).follow("build")) console.log(piece);
 */
export function streams(place: StreamsPlace): Streams {
  const actor = place.actor("tools/streams");
  const open: Streams["open"] = (stream, options = {}) => {
    const { replay } = options;
    return actor.ask("open", replay === undefined ? { stream } : { stream, replay }, options);
  };
  const put: Streams["put"] = async (stream, piece, options) => {
    const patient = { deadlineMs: PATIENCE, ...options };
    return (await actor.ask("put", { stream, ...holding(piece) }, patient)).readers;
  };
  const end: Streams["end"] = (stream, options) => actor.ask("end", { stream }, options);
  const fail: Streams["fail"] = (stream, message, options) =>
    actor.ask("fail", { stream, message }, options);
  return {
    actor,
    open,
    put,
    end,
    fail,
    send: async (stream, pieces, options) => {
      await open(stream, options);
      try {
        for await (const piece of pieces) await put(stream, piece, options);
      } catch (error) {
        // Also where it was cancelled: readers are not left waiting.
        const why = error instanceof Error ? error.message : String(error);
        await fail(stream, why).catch(() => {});
        throw error;
      }
      await end(stream, options);
    },
    follow: (stream, options = {}) => follow(actor, stream, options),
    list: (options) => actor.ask("list", undefined, options),
  };
}

async function* follow(
  actor: ActorRef<StreamsProtocol>,
  stream: string,
  options: StreamOptions,
): AsyncGenerator<Piece, void, undefined> {
  const { window } = options;
  const payload = window === undefined ? { stream } : { stream, window };
  for await (const piece of actor.stream("follow", payload, options)) {
    if (typeof piece !== "string" && !(piece instanceof Uint8Array)) {
      throw new MessageError("protocol", "a piece is a text or octets");
    }
    yield piece;
  }
}
