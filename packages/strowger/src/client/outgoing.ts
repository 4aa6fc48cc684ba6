import { cancelled, onAbort } from "../delivery.js";
import { badRequest, MessageError } from "../error.js";
import type { AskOptions, StreamOptions } from "../protocol.js";
import { ItemReader } from "../stream.js";
import { Timer, type TimerWheel } from "../wheel.js";
import type { Name } from "./name.js";
import type { Session } from "./session.js";

/** A call to a node, from when it is submitted to its answer. */
export interface Outgoing {
  readonly kind: "call" | "tell";
  readonly name: Name;
  readonly payload: unknown;
  /** `true` if nobody waits for the answer. */
  readonly isOver: boolean;
  /** Time limit in milliseconds; 0 for none. */
  readonly deadlineMs: number;
  /**
   * Set if the call had to wait before it was sent: the time of submission, and a function that
   * leaves the queue, for a call that is over.
   */
  waits: { readonly since: number; readonly leave: () => void } | undefined;
  /** Number of items that the reader takes at first. */
  readonly window: number;
  /** The session in which the call was sent, and its id there. */
  sent: { readonly session: Session; readonly id: number } | undefined;
  /** Delivers an item. Returns `false` if the reader granted no credit for it. */
  item(value: unknown): boolean;
  /** Completes the call with its answer, which is `undefined` if there was no payload. */
  done(value: unknown): void;
  fail(error: MessageError): void;
}

/** An ask or a tell, which settles one promise. */
export class Call extends Timer implements Outgoing {
  readonly kind: "call" | "tell";
  readonly name: Name;
  readonly payload: unknown;
  readonly deadlineMs: number;
  readonly window = 0;
  readonly promise: Promise<unknown>;
  isOver = false;
  waits: Outgoing["waits"] = undefined;
  sent: Outgoing["sent"] = undefined;
  readonly #wheel: TimerWheel;
  #resolve!: (value: unknown) => void;
  #reject!: (error: MessageError) => void;
  #forget: (() => void) | undefined;

  constructor(
    kind: "call" | "tell",
    name: Name,
    payload: unknown,
    deadlineMs: number,
    wheel: TimerWheel,
  ) {
    super();
    this.kind = kind;
    this.name = name;
    this.payload = payload;
    this.deadlineMs = deadlineMs;
    this.#wheel = wheel;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    wheel.add(this, deadlineMs);
  }

  /** Cancels the call when the signal is aborted. */
  listen(signal: Required<AskOptions>["signal"]): void {
    this.#forget = onAbort(signal, (reason) => this.#giveUp(cancelled(this.name.type, reason)));
  }

  item(): boolean {
    return false;
  }

  done(value: unknown): void {
    if (this.isOver) return;
    this.#close();
    this.#resolve(value);
  }

  fail(error: MessageError): void {
    if (this.isOver) return;
    this.#close();
    this.#reject(error);
  }

  expire(): void {
    const text = `no answer to ${this.name.type} within its deadline`;
    this.#giveUp(new MessageError("deadline", text));
  }

  #giveUp(error: MessageError): void {
    if (this.isOver) return;
    this.sent?.session.cancel(this.sent.id);
    this.fail(error);
  }

  #close(): void {
    this.isOver = true;
    this.#wheel.remove(this);
    this.waits?.leave();
    this.#forget?.();
  }
}

/** The items of a stream from an actor in a node. */
export class RemoteStream extends ItemReader implements Outgoing {
  readonly kind = "call";
  readonly name: Name;
  readonly payload: unknown;
  readonly deadlineMs: number;
  waits: Outgoing["waits"] = undefined;
  sent: Outgoing["sent"] = undefined;
  /** Number of items that the node may still send. */
  #expected: number;
  #isAnswered = false;

  constructor(
    name: Name,
    payload: unknown,
    options: StreamOptions | undefined,
    wheel: TimerWheel,
  ) {
    super(options?.window ?? 64, wheel);
    this.name = name;
    this.payload = payload;
    this.deadlineMs = options?.deadlineMs ?? 0;
    this.#expected = this.window;
    if (this.deadlineMs > 0) wheel.add(this, this.deadlineMs);
    if (options?.signal !== undefined) {
      this.forget = onAbort(options.signal, (reason) => this.end(cancelled(name.type, reason)));
    }
  }

  get isOver(): boolean {
    return this.isEnded;
  }

  item(value: unknown): boolean {
    if (this.#expected === 0) return false;
    this.#expected -= 1;
    if (!this.isEnded) this.deliver(value);
    return true;
  }

  done(value: unknown): void {
    this.#isAnswered = true;
    this.end(value === undefined ? undefined : badRequest(`${this.name.type} is no stream`));
  }

  fail(error: MessageError): void {
    this.#isAnswered = true;
    this.end(error);
  }

  protected override grant(credit: number): void {
    this.#expected += credit;
    this.sent?.session.grant(this.sent.id, credit);
  }

  protected override leave(): void {
    this.waits?.leave();
    if (!this.#isAnswered) this.sent?.session.cancel(this.sent.id);
  }
}
