import { badRequest, MessageError, throwLater } from "./error.js";
import type { Message } from "./message.js";
import type { Call, Items } from "./protocol.js";
import { type ActorStream, isStream, leaveItems } from "./stream.js";
import { Timer, type TimerWheel } from "./wheel.js";

/** A message on its way through an actor, and the call that its handler sees. */
export class Delivery implements Call {
  readonly type: string;
  readonly payload: unknown;
  readonly message: Message | undefined;
  /** `true` if the message was answered, or nobody waits for its answer. */
  isOver = false;
  /** The error that ended it, if it failed. */
  why: MessageError | undefined = undefined;
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
      if (this.isOver) this.#abort.abort(this.why);
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
    this.why = error;
    this.#abort?.abort(error);
  }

  /** Calls back when the sender has given up, if it can: a tell is given up by its signal alone. */
  whenOver(_callback: () => void): void {}

  /** Fails the message and aborts its signal, unless it is already over. */
  abort(error: MessageError): void {
    if (!this.isOver) this.refuse(error);
  }
}

/** The part of an actor that produces streams. */
export interface Server {
  serve(subscription: Subscription, items: unknown): void;
}

/** The promise of an answer, and the deadline of its ask. */
class Waiting extends Timer {
  readonly promise: Promise<unknown>;
  readonly #question: Question;
  resolve!: (result: unknown) => void;
  reject!: (error: MessageError) => void;

  constructor(question: Question) {
    super();
    this.#question = question;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  expire(): void {
    this.#question.expire();
  }
}

/** An ask, with its answer, its deadline and the signal that cancels it. */
export class Question extends Delivery {
  readonly #wheel: TimerWheel;
  readonly #deadlineMs: number;
  #answer: unknown = undefined;
  /** Created when the answer is not there at once: most asks need neither promise nor timer. */
  #waiting: Waiting | undefined = undefined;
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
    this.#deadlineMs = deadlineMs;
    this.#sample = sample;
  }

  /**
   * Returns the answer, or a promise of it if there is none yet. Throws the error of an ask that
   * has failed. Called once.
   */
  result(): unknown {
    if (!this.isOver) return this.promise();
    if (this.why !== undefined) throw this.why;
    return this.#answer;
  }

  /** Returns a promise of the answer, and starts the deadline; called instead of `result`. */
  promise(): Promise<unknown> {
    if (this.why !== undefined) return Promise.reject(this.why);
    this.#waiting = new Waiting(this);
    this.#wheel.add(this.#waiting, this.#deadlineMs);
    return this.#waiting.promise;
  }

  /** Cancels the ask when the signal is aborted. */
  listen(signal: AbortSignal): void {
    this.#forget = onAbort(signal, (reason) => this.abort(cancelled(this.type, reason)));
  }

  override complete(result: unknown): void {
    if (isStream(result)) {
      this.#refuseStream(result);
    } else if (!this.isOver) {
      this.#close();
      this.isOver = true;
      this.#answer = result;
      this.#waiting?.resolve(result);
    }
    this.#sample?.();
  }

  override refuse(error: MessageError): void {
    if (this.isOver) return;
    super.refuse(error);
    this.#close();
    this.#waiting?.reject(error);
  }

  override whenOver(callback: () => void): void {
    const forget = this.#forget;
    this.#forget = () => {
      forget?.();
      callback();
    };
  }

  expire(): void {
    this.abort(new MessageError("deadline", `no answer to ${this.type} within its deadline`));
  }

  /** Rejects an ask whose result is a stream, and tells the producer that it has no reader. */
  #refuseStream(items: Items<unknown>): void {
    const { type } = this;
    this.refuse(badRequest(`${type} is a stream: it is read with stream(${JSON.stringify(type)}),`
      + " not asked"));
    leaveItems(items);
  }

  #close(): void {
    if (this.#waiting !== undefined) this.#wheel.remove(this.#waiting);
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

  override whenOver(callback: () => void): void {
    const { onEnd } = this.stream;
    this.stream.onEnd = (error) => {
      onEnd(error);
      callback();
    };
  }

  override complete(items: unknown, server: Server): void {
    server.serve(this, items);
  }

  override refuse(error: MessageError): void {
    this.stream.end(error);
  }
}

/** Returns the error of a message whose signal was aborted, with the reason of the signal. */
export function cancelled(type: string, reason?: unknown): MessageError {
  return new MessageError("cancelled", `${type} was cancelled`, { cause: reason });
}

type AbortCallback = (reason: unknown) => void;

/** The callbacks of this package on one signal. They share a listener while there are any. */
class AbortCallbacks {
  readonly #signal: AbortSignal;
  readonly #callbacks = new Set<AbortCallback>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(callback: AbortCallback): void {
    if (this.#callbacks.size === 0) {
      this.#signal.addEventListener("abort", this.#run, { once: true });
    }
    this.#callbacks.add(callback);
  }

  remove(callback: AbortCallback): void {
    if (!this.#callbacks.delete(callback) || this.#callbacks.size > 0) return;
    // A runtime may keep a signal in memory for as long as it has a listener.
    this.#signal.removeEventListener("abort", this.#run);
  }

  readonly #run = (): void => {
    for (const callback of this.#callbacks) {
      try {
        callback(this.#signal.reason);
      } catch (thrown) {
        throwLater(thrown);
      }
    }
  };
}

const abortCallbacks = new WeakMap<AbortSignal, AbortCallbacks>();

/**
 * Calls back with the reason on abort, at once if the signal is already aborted. Returns a function
 * that takes the callback back. A callback is passed once.
 *
 * Many messages may share a signal. A listener for each would be reported as a leak, and removing
 * one would search all of them.
 */
export function onAbort(signal: AbortSignal, callback: AbortCallback): () => void {
  if (signal.aborted) {
    callback(signal.reason);
    return () => {};
  }
  let known = abortCallbacks.get(signal);
  if (known === undefined) {
    known = new AbortCallbacks(signal);
    abortCallbacks.set(signal, known);
  }
  const callbacks = known;
  callbacks.add(callback);
  return () => callbacks.remove(callback);
}
