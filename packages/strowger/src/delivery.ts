import { type ErrorCode, MessageError } from "./error.js";
import type { Message } from "./message.js";
import type { Call } from "./protocol.js";
import type { ActorStream } from "./stream.js";
import { Timer, type TimerWheel } from "./wheel.js";

/** One message on its way through an actor, and what its handler is told. */
export class Delivery extends Timer implements Call {
  readonly type: string;
  readonly payload: unknown;
  readonly message: Message | undefined;
  /** Nobody waits for it any more, or it was answered. */
  isOver = false;
  /** Why it has no answer, if it has none. */
  why: ErrorCode | undefined;
  #abort: AbortController | undefined;

  constructor(type: string, payload: unknown, message: Message | undefined) {
    super();
    this.type = type;
    this.payload = payload;
    this.message = message;
  }

  get signal(): AbortSignal {
    // Made when somebody looks: a controller costs more than a message.
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.isOver) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** Gives the one who asked the answer. */
  answer(_result: unknown): void {
    this.isOver = true;
  }

  /** Gives the one who asked the reason why there is none. */
  refuse(error: MessageError): void {
    this.isOver = true;
    this.why = error.code;
    this.#abort?.abort(error);
  }

  /** Tells the handler that nobody waits for it, unless it was answered. */
  abort(error: MessageError): void {
    if (!this.isOver) this.refuse(error);
  }

  expire(): void {
    this.abort(new MessageError("deadline", `no answer to ${this.type} within its deadline`));
  }
}

/** A question: its promise, its deadline, and the signal that cancels it. */
export class Question extends Delivery {
  readonly promise: Promise<unknown>;
  /** When it was asked, if it is one of those that are timed. */
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

  /** Lets a signal cancel it. */
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

/** A question whose answer is a stream. */
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

/** Calls back on abort, at once if that has been; the result takes it back. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}
