import { badRequest, type ErrorCode, MessageError } from "./error.js";
import type { Message } from "./message.js";
import type { Call, Items } from "./protocol.js";
import { type ActorStream, isStream, leaveItems } from "./stream.js";
import type { Timer, TimerWheel } from "./wheel.js";

/** A message on its way through an actor, and the call that its handler sees. */
export class Delivery implements Call {
  readonly type: string;
  readonly payload: unknown;
  readonly message: Message | undefined;
  /** `true` if the message was answered, or nobody waits for its answer. */
  isOver = false;
  /** The code of the error that ended it, if it failed. */
  why: ErrorCode | undefined = undefined;
  #abort: AbortController | undefined = undefined;

  constructor(type: string, payload: unknown, message: Message | undefined) {
    this.type = type;
    this.payload = payload;
    this.message = message;
  }

  get signal(): AbortSignal {
    // Created on first use: an AbortController costs more than a message.
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.isOver) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** Completes the message with what its handler returned. */
  complete(_result: unknown, _server: Server): void {
    this.isOver = true;
  }

  /** Sends an error to the caller, and aborts the signal. */
  refuse(error: MessageError): void {
    this.isOver = true;
    this.why = error.code;
    this.#abort?.abort(error);
  }

  /** Fails the message and aborts its signal, unless it is already over. */
  abort(error: MessageError): void {
    if (!this.isOver) this.refuse(error);
  }
}

/** The part of an actor that produces streams. */
export interface Server {
  serve(subscription: Subscription, items: unknown): void;
}

// Taking the functions of a promise through variables saves a closure for each ask.
let resolveNew: (result: unknown) => void;
let rejectNew: (error: MessageError) => void;
function take(resolve: (result: unknown) => void, reject: (error: MessageError) => void): void {
  resolveNew = resolve;
  rejectNew = reject;
}

/** An ask, with its promise, its deadline and the signal that cancels it. */
export class Question extends Delivery implements Timer {
  among: Timer["among"] = undefined;
  at = 0;
  due = 0;
  readonly promise: Promise<unknown>;
  readonly #wheel: TimerWheel;
  readonly #resolve: (result: unknown) => void;
  readonly #reject: (error: MessageError) => void;
  /** Records the time of the answer, if the ask is sampled. */
  readonly #sample: (() => void) | undefined;
  #forget: (() => void) | undefined = undefined;

  constructor(
    type: string,
    payload: unknown,
    message: Message | undefined,
    wheel: TimerWheel,
    deadlineMs: number,
    sample: (() => void) | undefined,
  ) {
    super(type, payload, message);
    this.#wheel = wheel;
    this.#sample = sample;
    this.promise = new Promise(take);
    this.#resolve = resolveNew;
    this.#reject = rejectNew;
    wheel.add(this, deadlineMs);
  }

  /** Cancels the ask when the signal is aborted. */
  listen(signal: AbortSignal): void {
    this.#forget = onAbort(signal, () => this.abort(cancelled(this.type)));
  }

  override complete(result: unknown): void {
    if (isStream(result)) this.#refuseStream(result);
    else if (!this.isOver) this.#answer(result);
    this.#sample?.();
  }

  override refuse(error: MessageError): void {
    if (this.isOver) return;
    this.#close();
    super.refuse(error);
    this.#reject(error);
  }

  expire(): void {
    this.abort(new MessageError("deadline", `no answer to ${this.type} within its deadline`));
  }

  #answer(result: unknown): void {
    this.#close();
    this.isOver = true;
    this.#resolve(result);
  }

  /** Rejects an ask whose result is a stream, and tells the producer that it has no reader. */
  #refuseStream(items: Items<unknown>): void {
    const { type } = this;
    this.refuse(badRequest(`${type} is a stream: it is read with stream(${JSON.stringify(type)}),`
      + " not asked"));
    leaveItems(items);
  }

  #close(): void {
    this.#wheel.remove(this);
    this.#forget?.();
  }
}

/** A request for a stream. */
export class Subscription extends Delivery {
  readonly stream: ActorStream;

  constructor(type: string, payload: unknown, message: Message | undefined, stream: ActorStream) {
    super(type, payload, message);
    this.stream = stream;
    stream.onEnd = (error) => {
      if (error !== undefined) super.refuse(error);
      this.isOver = true;
    };
  }

  override complete(items: unknown, server: Server): void {
    server.serve(this, items);
  }

  override refuse(error: MessageError): void {
    this.stream.end(error);
  }
}

export function cancelled(type: string): MessageError {
  return new MessageError("cancelled", `${type} was cancelled`);
}

/**
 * Calls back on abort, at once if the signal is already aborted. Returns a function that removes
 * the listener.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}
