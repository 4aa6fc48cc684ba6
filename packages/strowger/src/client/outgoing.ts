import { cancelled, onAbort } from "../delivery.js";
import { badRequest, MessageError } from "../error.js";
import type { AskOptions, StreamOptions } from "../protocol.js";
import { ItemReader } from "../stream.js";
import { Timer, type TimerWheel } from "../wheel.js";
import type { Name } from "./name.js";
import type { Session } from "./session.js";

/** What goes to a node and comes back with an answer. */
export interface Outgoing {
  readonly kind: "call" | "tell";
  readonly name: Name;
  readonly payload: unknown;
  /** Nobody waits for it any more. */
  readonly isOver: boolean;
  /** Milliseconds that it may take; 0 for no limit. */
  readonly deadlineMs: number;
  /** When it was made, if it had to wait before it was sent. */
  waitsSince: number | undefined;
  /** Items that its reader takes at first. */
  readonly window: number;
  /** Where it was sent, and as what. */
  sent: { readonly session: Session; readonly id: number } | undefined;
  /** An item came; false if it was not asked for. */
  item(value: unknown): boolean;
  /** It was answered; with `undefined` if there was no payload. */
  done(value: unknown): void;
  fail(error: MessageError): void;
}

/** A question or a tell: one promise. */
export class Call extends Timer implements Outgoing {
  readonly kind: "call" | "tell";
  readonly name: Name;
  readonly payload: unknown;
  readonly deadlineMs: number;
  readonly window = 0;
  readonly promise: Promise<unknown>;
  isOver = false;
  waitsSince: number | undefined = undefined;
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

  /** Lets a signal cancel it. */
  listen(signal: Required<AskOptions>["signal"]): void {
    this.#forget = onAbort(signal, () => this.#giveUp(cancelled(this.name.type)));
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
    this.#forget?.();
  }
}

/** Items of an actor in a node. */
export class RemoteStream extends ItemReader implements Outgoing {
  readonly kind = "call";
  readonly name: Name;
  readonly payload: unknown;
  readonly deadlineMs: number;
  waitsSince: number | undefined = undefined;
  sent: Outgoing["sent"] = undefined;
  /** Items that the node may still send. */
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
      this.forget = onAbort(options.signal, () => this.end(cancelled(name.type)));
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
    if (!this.#isAnswered) this.sent?.session.cancel(this.sent.id);
  }
}
