import type { Address } from "./address.js";
import type { ErrorCode } from "./error.js";
import type { Message } from "./message.js";

/**
 * The messages of an actor: a map from the name of a message to its payload and reply.
 *
 * A message with `item` is a stream, which is read and cannot be asked. A message without `reply`
 * has an empty answer.
 *
 * @example
 * type Counter = {
 *   add: { payload: number; reply: number };
 *   reset: {};
 *   history: { item: number };
 * };
 */
export type Protocol<P> = { readonly [K in keyof P]: Entry };

/** A message of a {@link Protocol}. */
export interface Entry {
  readonly payload?: unknown;
  readonly reply?: unknown;
  readonly item?: unknown;
}

/** Messages of any name and type, for callers that learn the names only at run time. */
export type AnyProtocol = Readonly<
  Record<string, { readonly payload: unknown; readonly reply: unknown; readonly item: unknown }>
>;

export type PayloadOf<E> = E extends { readonly payload: infer T } ? T : undefined;
export type ReplyOf<E> = E extends { readonly reply: infer T } ? T : void;
export type ItemOf<E> = E extends { readonly item: infer T } ? T : never;
type Name<P> = keyof P & string;
/**
 * Streams cannot be asked. If the names are unknown, so is which of them are streams: allow all.
 */
type AskName<P> = string extends keyof P
  ? Name<P>
  : { [K in Name<P>]: P[K] extends { readonly item: unknown } ? never : K }[Name<P>];
type StreamName<P> = {
  [K in Name<P>]: P[K] extends { readonly item: unknown } ? K : never;
}[Name<P>];
type Rest<E, Options> = E extends { readonly payload: infer T }
  ? [payload: T, options?: Options]
  : [payload?: undefined, options?: Options];

/** Options of a tell. */
export interface TellOptions {
  /**
   * Withdraws the message while it waits for room; it is not sent if the signal is aborted already.
   */
  readonly signal?: AbortSignal;
}

/** Options of an ask. */
export interface AskOptions {
  /**
   * Time limit for the answer in milliseconds, more than 0 and at most 2^32 - 1. Default: the
   * `deadlineMs` of the system or connection.
   */
  readonly deadlineMs?: number;
  /**
   * Cancels the ask: the answer is discarded, and the handler's signal is aborted. The reason of
   * the signal is the `cause` of the error.
   */
  readonly signal?: AbortSignal;
}

/** Options of a stream. */
export interface StreamOptions {
  /** Maximum number of items that wait for the reader. Default: 64. */
  readonly window?: number;
  /**
   * Time limit for the end of the stream in milliseconds, more than 0 and at most 2^32 - 1.
   * Default: none.
   */
  readonly deadlineMs?: number;
  /** Ends the stream with `cancelled`. */
  readonly signal?: AbortSignal;
}

/** A reference to an actor, in this process or in a node. It remains valid across restarts. */
export interface ActorRef<P> {
  readonly address: Address;

  /**
   * Queues a message. Resolves once the message is queued, which is immediately if there is room.
   *
   * Rejects with `unknown-target` if the actor has ended, or with `full`, depending on the overflow
   * rule of the mailbox. The rejection does not have to be handled: the message is reported as a
   * dead letter.
   */
  tell<K extends Name<P>>(type: K, ...rest: Rest<P[K], TellOptions>): Promise<void>;

  /**
   * Sends a message and resolves with the answer.
   *
   * Rejects with a MessageError: `unknown-target`, `bad-request`, `full`, `deadline`, `cancelled`,
   * `failed`, or the error that the handler threw. Asking for a stream is a `bad-request`.
   */
  ask<K extends AskName<P>>(type: K, ...rest: Rest<P[K], AskOptions>): Promise<ReplyOf<P[K]>>;

  /**
   * Requests a stream, whose items are sent as fast as they are read. Only one loop can read them.
   */
  stream<K extends StreamName<P>>(
    type: K,
    ...rest: Rest<P[K], StreamOptions>
  ): AsyncIterableIterator<ItemOf<P[K]>>;
}

/** A reference to an actor of this process, which can also be observed and stopped. */
export interface LocalRef<P> extends ActorRef<P> {
  /** `true` if the actor accepts messages. */
  readonly isAlive: boolean;

  /**
   * Stops the actor and its children for good, after the current message. Resolves with the reason.
   */
  stop(): Promise<Exit>;

  /** Resolves with the reason once the actor has ended for good. */
  readonly ended: Promise<Exit>;

  /** Returns the current stats of the actor. */
  info(): ActorInfo;
}

/** The reason why an actor, or one incarnation of it, ended. */
export interface Exit {
  /** `killed`: it exceeded the time limit for shutdown. `intensity`: it failed too often. */
  readonly reason: "stopped" | "killed" | "failed" | "intensity";
  /** The value that was thrown, if any. */
  readonly error?: unknown;
}

/** The stats of an actor at one moment. */
export interface ActorInfo {
  readonly address: Address;
  readonly state: "starting" | "running" | "restarting" | "stopping" | "ended";
  /** Number of queued messages. */
  readonly depth: number;
  readonly capacity: number;
  /** Largest number of messages that were queued at a time. */
  readonly highWater: number;
  readonly handled: number;
  /** Number of messages that the overflow rule dropped. */
  readonly dropped: number;
  readonly restarts: number;
  readonly lastExit: Exit | undefined;
  readonly children: number;
}

/** The context of a message that a handler is called with. */
export interface Call {
  readonly type: string;
  /** Aborted when the caller gives up, or when the actor fails or is killed. */
  readonly signal: AbortSignal;
  /** The envelope, if the message arrived in one. */
  readonly message: Message | undefined;
}

/**
 * The source of a stream: a generator, or another iterable that makes items while they are read.
 *
 * A collection of known size, such as an array, `Map` or `Set`, is an answer, because without types
 * the two could not be told apart. To stream a collection, return its `values()`.
 */
export type Items<T> = AsyncIterable<T> | (Iterable<T> & NoCollection);
type NoCollection = {
  readonly length?: never;
  readonly size?: never;
  readonly entries?: never;
};

type Handler<E> = E extends { readonly item: infer T }
  ? (payload: PayloadOf<E>, call: Call) => Items<T>
  : (payload: PayloadOf<E>, call: Call) => ReplyOf<E> | Promise<ReplyOf<E>>;

/**
 * One incarnation of an actor: a handler for each message, and the state that the handlers share.
 */
export interface Actor<P> {
  readonly handle: { readonly [K in keyof P]: Handler<P[K]> };
  /** Handles messages with other names. Without it they are rejected with `bad-request`. */
  readonly otherwise?: (payload: unknown, call: Call) => unknown;
  /** Called once when the incarnation has ended. */
  readonly postStop?: (exit: Exit) => void | Promise<void>;
}

/** The context in which an incarnation is made. */
export interface ActorContext<P> {
  readonly self: LocalRef<P>;
  /**
   * Starts a child. The child ends before this incarnation does, and fails it if it exceeds its
   * restart intensity.
   */
  spawn<C extends Protocol<C>>(key: string, make: Make<C>, options?: SpawnOptions): LocalRef<C>;
  /** Ends this incarnation after the current message. */
  stop(): void;
}

/** Makes an incarnation; called again for each restart. */
export type Make<P> = (context: ActorContext<P>) => Actor<P> | Promise<Actor<P>>;

/** The rule for a message that finds the mailbox full. */
export type Overflow = "wait" | "fail" | "drop-newest" | "drop-oldest" | "keep-latest";

/** Options of an actor. */
export interface SpawnOptions {
  /** Maximum number of queued messages. Default: 1024. */
  readonly capacity?: number;
  /** The rule for messages beyond the capacity. Default: `wait`. */
  readonly overflow?: Overflow;
  /**
   * The rule for restarts: whenever an incarnation ends (`permanent`), only if it failed
   * (`transient`, the default), or never (`temporary`).
   */
  readonly restart?: "permanent" | "transient" | "temporary";
  /** Maximum number of restarts within a period. Default: 5 within 10 000 ms. */
  readonly intensity?: { readonly restarts: number; readonly withinMs: number };
  /**
   * The children to restart when one of them fails: only that one (`one-for-one`, the default), all
   * (`one-for-all`), or that one and those spawned after it (`rest-for-one`). They are stopped in
   * the reverse of the order in which they were spawned, and started in that order.
   */
  readonly strategy?: "one-for-one" | "one-for-all" | "rest-for-one";
  /**
   * Delays before the second and later restarts, in milliseconds: doubled each time, from
   * `initialMs` up to `maxMs`. Default: from 50 to 10 000.
   */
  readonly backoff?: { readonly initialMs: number; readonly maxMs: number };
  /**
   * Time limit in milliseconds for a shutdown, before the actor is killed: for its current message,
   * its children, each of which has its own limit as well, and its `postStop`. Default: 5000.
   */
  readonly shutdownMs?: number;
  /** Maximum number of open streams. Default: 1024. */
  readonly streams?: number;
}

/** A message that no actor handled. */
export interface DeadLetter {
  readonly to: Address;
  readonly type: string;
  readonly payload: unknown;
  readonly code: ErrorCode;
}
