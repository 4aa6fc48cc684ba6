import { holding } from "../base64.js";
import { MessageError, reasonOf } from "../error.js";
import type { ActorRef, AskOptions, StreamOptions } from "../protocol.js";

/** A piece of a stream: text, or arbitrary bytes. */
export type Piece = string | Uint8Array;

/** Stats of a stream that has not ended. */
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

/** A connection to the node that has the streams actor. */
export interface StreamsPlace {
  actor(at: string): ActorRef<StreamsProtocol>;
}

/** Named streams, each from one producer to many readers. */
export interface Streams {
  /** The streams actor itself. */
  readonly actor: ActorRef<StreamsProtocol>;
  /** Opens a stream. */
  open(stream: string, options?: AskOptions & { readonly replay?: number }): Promise<void>;
  /** Sends a piece. Resolves with the number of readers once all of them have room. */
  put(stream: string, piece: Piece, options?: AskOptions): Promise<number>;
  /** Ends a stream normally. */
  end(stream: string, options?: AskOptions): Promise<void>;
  /** Ends a stream with an error, which readers receive after the pieces sent before. */
  fail(stream: string, message: string, options?: AskOptions): Promise<void>;
  /**
   * Opens a stream, sends all pieces at the pace of the slowest reader, and ends the stream: with
   * an error if the source of the pieces fails.
   */
  send(
    stream: string,
    pieces: AsyncIterable<Piece> | Iterable<Piece>,
    options?: AskOptions & { readonly replay?: number },
  ): Promise<void>;
  /**
   * Reads a stream: the replayed pieces, then all new ones. Leaving the loop removes the reader.
   */
  follow(stream: string, options?: StreamOptions): AsyncIterableIterator<Piece>;
  list(options?: AskOptions): Promise<readonly StreamInfo[]>;
}

/** Default deadline of a piece in milliseconds: longer than a node lets a reader stall. */
const PATIENCE = 60_000;

/**
 * Returns the streams of a node, at `@(tools/streams)`.
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
        // Also if it was cancelled: readers must not be left waiting.
        await fail(stream, reasonOf(error)).catch(() => {});
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
      throw new MessageError("protocol", "an item must be text or bytes");
    }
    yield piece;
  }
}
