import type { Address } from "./address.js";
import type { ErrorCode } from "./error.js";
import type { Message } from "./message.js";

/**
 * The messages of an actor: a map from name to what it carries and what comes back.
 *
 * A name with `item` is a stream; one without `reply` answers with nothing.
 *
 * @example
 * type Counter = {
 *   add: { payload: number; reply: number };
 *   reset: {};
 *   history: { item: number };
 * };
 */
export type Protocol<P> = { readonly [K in keyof P]: Entry };

/** One message of a {@link Protocol}. */
export interface Entry {
  readonly payload?: unknown;
  readonly reply?: unknown;
  readonly item?: unknown;
}

/** Any messages at all, for those whose names are known only when they come. */
export type AnyProtocol = Readonly<
  Record<string, { readonly payload: unknown; readonly reply: unknown; readonly item: unknown }>
>;

export type PayloadOf<E> = E extends { readonly payload: infer T } ? T : undefined;
export type ReplyOf<E> = E extends { readonly reply: infer T } ? T : void;
export type ItemOf<E> = E extends { readonly item: infer T } ? T : never;
type Name<P> = keyof P & string;
/** Streams are not asked, unless the names are not known: then nobody knows which they are. */
type AskName<P> = string extends keyof P
  ? Name<P>
  : { [K in Name<P>]: P[K] extends { readonly item: unknown } ? never : K }[Name<P>];
type StreamName<P> = {
  [K in Name<P>]: P[K] extends { readonly item: unknown } ? K : never;
}[Name<P>];
type Rest<E, Options> = E extends { readonly payload: infer T }
  ? [payload: T, options?: Options]
  : [payload?: undefined, options?: Options];

/** How a message is told. */
export interface TellOptions {
  /** Takes the message back while it waits for room. */
  readonly signal?: AbortSignal;
}

/** How a question is asked. */
export interface AskOptions {
  /**
   * Milliseconds until the answer has to be here, more than 0 and at most 2^32 - 1; the system's
   * `deadlineMs` if not given.
   */
  readonly deadlineMs?: number;
  /** Cancels: the answer is dropped, and the handler's signal is aborted. */
  readonly signal?: AbortSignal;
}

/** How a stream is read. */
export interface StreamOptions {
  /** Items that may wait for the reader; 64 if not given. */
  readonly window?: number;
  /**
   * Milliseconds until the end has to be here, more than 0 and at most 2^32 - 1; no limit if not
   * given.
   */
  readonly deadlineMs?: number;
  /** Ends the stream with `cancelled`. */
  readonly signal?: AbortSignal;
}

/** How an actor is spoken to, here or in a node; it stays the same over restarts. */
export interface ActorRef<P> {
  readonly address: Address;

  /**
   * Queues a message. Resolves once it is queued, which is at once while there is room.
   *
   * Rejects with `unknown-target` if the actor has ended, or `full`, as the mailbox's rule says.
   * A rejection that nobody looks at is no fault of the program: the message is a dead letter.
   */
  tell<K extends Name<P>>(type: K, ...rest: Rest<P[K], TellOptions>): Promise<void>;

  /**
   * Queues a message and waits for its answer.
   *
   * Rejects with a MessageError: `unknown-target`, `bad-request`, `full`, `deadline`, `cancelled`,
   * `failed`, or what the handler threw. A stream is no question: `bad-request`.
   */
  ask<K extends AskName<P>>(type: K, ...rest: Rest<P[K], AskOptions>): Promise<ReplyOf<P[K]>>;

  /** Asks for items, which come as fast as they are read. One loop can read them. */
  stream<K extends StreamName<P>>(
    type: K,
    ...rest: Rest<P[K], StreamOptions>
  ): AsyncIterableIterator<ItemOf<P[K]>>;
}

/** An actor of this process, which can be watched and ended as well. */
export interface LocalRef<P> extends ActorRef<P> {
  /** Whether it takes messages. */
  readonly isAlive: boolean;

  /** Lets the actor finish the message it is at, and ends it and its children for good. */
  stop(): Promise<Exit>;

  /** Resolves when the actor has ended for good. */
  readonly ended: Promise<Exit>;

  /** The figures of the actor at this moment. */
  info(): ActorInfo;
}

/** Why an actor, or one incarnation of it, is over. */
export interface Exit {
  /** `killed`: it did not end in time. `intensity`: it failed too often. */
  readonly reason: "stopped" | "killed" | "failed" | "intensity";
  /** What was thrown, if anything was. */
  readonly error?: unknown;
}

/** The figures of one actor at one moment. */
export interface ActorInfo {
  readonly address: Address;
  readonly state: "starting" | "running" | "restarting" | "stopping" | "ended";
  /** Messages that wait. */
  readonly depth: number;
  readonly capacity: number;
  /** The most that ever waited. */
  readonly highWater: number;
  readonly handled: number;
  /** Messages that the overflow rule dropped. */
  readonly dropped: number;
  readonly restarts: number;
  readonly lastExit: Exit | undefined;
  readonly children: number;
}

/** What a handler is told about the message it handles. */
export interface Call {
  readonly type: string;
  /** Aborted when the one who asked gave up, or the actor is killed. */
  readonly signal: AbortSignal;
  /** The envelope, if the message came in one. */
  readonly message: Message | undefined;
}

type Handler<E> = E extends { readonly item: infer T }
  ? (payload: PayloadOf<E>, call: Call) => AsyncIterable<T> | Iterable<T>
  : (payload: PayloadOf<E>, call: Call) => ReplyOf<E> | Promise<ReplyOf<E>>;

/** One incarnation of an actor: a handler for each message, around the state they share. */
export interface Actor<P> {
  readonly handle: { readonly [K in keyof P]: Handler<P[K]> };
  /** Handles messages with other names; without it they are a `bad-request`. */
  readonly otherwise?: (payload: unknown, call: Call) => unknown;
  /** Called once when the incarnation is over. */
  readonly postStop?: (exit: Exit) => void | Promise<void>;
}

/** What an incarnation is made with. */
export interface ActorContext<P> {
  readonly self: LocalRef<P>;
  /** Starts a child: it ends before this incarnation does, and fails it if it fails too often. */
  spawn<C extends Protocol<C>>(key: string, make: Make<C>, options?: SpawnOptions): LocalRef<C>;
  /** Ends this incarnation once the message at hand is handled. */
  stop(): void;
}

/** Makes an incarnation; called again for each restart. */
export type Make<P> = (context: ActorContext<P>) => Actor<P> | Promise<Actor<P>>;

/** What happens to a message for which there is no room. */
export type Overflow = "wait" | "fail" | "drop-newest" | "drop-oldest" | "keep-latest";

/** How an actor is run; each limit has a default. */
export interface SpawnOptions {
  /** Messages that may wait: 1024. */
  readonly capacity?: number;
  /** What happens beyond: `wait`. */
  readonly overflow?: Overflow;
  /** `permanent`: started again however it ended; `transient` (the default): if it failed. */
  readonly restart?: "permanent" | "transient" | "temporary";
  /** How many restarts within so many milliseconds it may have: 5 in 10 000. */
  readonly intensity?: { readonly restarts: number; readonly withinMs: number };
  /**
   * Which of its children begin anew when one of them fails: that one (`one-for-one`, the
   * default), all (`one-for-all`), or that one and those that were spawned after it
   * (`rest-for-one`). They end in the reverse of the order in which they were spawned, and begin in
   * that order.
   */
  readonly strategy?: "one-for-one" | "one-for-all" | "rest-for-one";
  /** Pauses before the second restart and on: 50 ms, doubled up to 10 000. */
  readonly backoff?: { readonly initialMs: number; readonly maxMs: number };
  /** Milliseconds that it may take to end before it is killed: 5000. */
  readonly shutdownMs?: number;
  /** Streams that may be open at a time: 1024. */
  readonly streams?: number;
}

/** A message that nobody handled. */
export interface DeadLetter {
  readonly to: Address;
  readonly type: string;
  readonly payload: unknown;
  readonly code: ErrorCode;
}
