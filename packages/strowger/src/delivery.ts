import { type ErrorCode, MessageError } from "./error.js";
import type { Message } from "./message.js";
import type { Call } from "./protocol.js";
import type { ActorStream } from "./stream.js";
import { Timer, type TimerWheel } from "./wheel.js";

/** A message on its way through an actor, and the call that its handler sees. */
export class Delivery extends Timer implements Call {
  readonly type: string;
  readonly payload: unknown;
  readonly message: Message | undefined;
  /** `true` if the message was answered, or nobody waits for its answer. */
  isOver = false;
  /** The code of the error that ended it, if it failed. */
  why: ErrorCode | undefined;
  #abort: AbortController | undefined;

  constructor(type: string, payload: unknown, message: Message | undefined) {
    super();
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

  /** Sends the answer to the caller. */
  answer(_result: unknown): void {
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

  expire(): void {
    this.abort(new MessageError("deadline", `no answer to ${this.type} within its deadline`));
  }
}

/** An ask, with its promise, its deadline and the signal that cancels it. */
export class Question extends Delivery {
  readonly promise: Promise<unknown>;
  /** The time of the ask if it is sampled, and -1 otherwise. */
  askedAt = -1;
  readonly #wheel: TimerWheel;
  #resolve!: (result: unknown) => void;
  #reject!: (error: MessageError) => void;
  #forget: (() => void) | undefined;

  constructor(
    type: string,
    payload: unknown,
    message: Message | undefined,
    wheel: TimerWheel,
    deadlineMs: number,
  ) {
    super(type, payload, message);
    this.#wheel = wheel;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    wheel.add(this, deadlineMs);
  }

  /** Cancels the ask when the signal is aborted. */
  listen(signal: AbortSignal): void {
    this.#forget = onAbort(signal, () => this.abort(cancelled(this.type)));
  }

  override answer(result: unknown): void {
    if (this.isOver) return;
    this.#close();
    super.answer(result);
    this.#resolve(result);
  }

  override refuse(error: MessageError): void {
    if (this.isOver) return;
    this.#close();
    super.refuse(error);
    this.#reject(error);
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
