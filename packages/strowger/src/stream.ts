import { nextTurn } from "./clock.js";
import { Inlet, Outlet } from "./credit.js";
import { asMessageError, MessageError } from "./error.js";
import type { Items } from "./protocol.js";
import { Ring } from "./ring.js";
import { Timer, type TimerWheel } from "./wheel.js";

type Waiting = {
  readonly resolve: (result: IteratorResult<unknown, undefined>) => void;
  readonly reject: (error: MessageError) => void;
};

/** Number of items of a stream before timers and sockets get a turn. */
const TURN = 1024;
const DONE: IteratorResult<unknown, undefined> = { done: true, value: undefined };

/** The reading end of a stream: queued items, and the credit that the reader grants. */
export abstract class ItemReader extends Timer
  implements AsyncIterableIterator<unknown, undefined> {
  /** Called once, when the stream has ended. */
  onEnd: (error: MessageError | undefined) => void = () => {};
  /** Releases resources that are not needed after the end, such as an abort listener. */
  forget: () => void = () => {};
  /** The credit that the reader grants at first. */
  readonly window: number;
  readonly #wheel: TimerWheel;
  readonly #inlet: Inlet;
  readonly #items = new Ring<unknown>();
  readonly #waiting = new Ring<Waiting>();
  #isEnded = false;
  #error: MessageError | undefined;

  constructor(window: number, wheel: TimerWheel) {
    super();
    this.#wheel = wheel;
    this.#inlet = new Inlet(window);
    this.window = this.#inlet.first;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    if (this.#items.length > 0) {
      const value = this.#items.shift();
      this.#taken();
      return Promise.resolve({ done: false, value });
    }
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#isEnded) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Stops reading: notifies the producer and drops the queued items. */
  return(): Promise<IteratorResult<unknown, undefined>> {
    this.end(new MessageError("cancelled", "the reader stopped reading"));
    while (this.#items.length > 0) this.#items.shift();
    this.#error = undefined;
    return Promise.resolve(DONE);
  }

  /** Ends the stream after the queued items, with an error if given. */
  end(error: MessageError | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#error = error;
    this.#wheel.remove(this);
    this.forget();
    for (let reader = this.#waiting.shift(); reader; reader = this.#waiting.shift()) {
      if (this.#error === undefined) {
        reader.resolve(DONE);
      } else {
        reader.reject(this.#error);
        this.#error = undefined;
      }
    }
    this.onEnd(error);
    this.leave();
  }

  expire(): void {
    this.end(new MessageError("deadline", "the stream did not end within its deadline"));
  }

  /** Passes an item to a waiting reader, or queues it. */
  protected deliver(value: unknown): void {
    const reader = this.#waiting.shift();
    if (reader === undefined) {
      this.#items.push(value);
      return;
    }
    reader.resolve({ done: false, value });
    this.#taken();
  }

  /** Grants the producer credit for more items. */
  protected abstract grant(credit: number): void;

  /** Tells the producer that the stream has ended. */
  protected abstract leave(): void;

  #taken(): void {
    const credit = this.#inlet.take();
    if (credit > 0 && !this.#isEnded) this.grant(credit);
  }
}

/**
 * A stream of items from an actor to one reader.
 *
 * The reader grants credit, and the pump makes items while there is credit. A reader that stops
 * reading stops the producer, with at most a window of items between them.
 */
export class ActorStream extends ItemReader {
  readonly #outlet = new Outlet();
  #source: AsyncIterator<unknown> | Iterator<unknown> | undefined;
  #isPumping = false;
  #made = 0;

  constructor(window: number, wheel: TimerWheel) {
    super(window, wheel);
    this.#outlet.grant(this.window);
  }

  /** Starts taking items from a source, as long as there is credit. */
  start(items: AsyncIterable<unknown> | Iterable<unknown>): void {
    try {
      this.#source = iteratorOf(items);
    } catch (thrown) {
      this.end(asMessageError(thrown));
      return;
    }
    if (this.isEnded) this.leave();
    else this.#pump();
  }

  protected override grant(credit: number): void {
    this.#outlet.grant(credit);
    if (!this.#isPumping && this.#source !== undefined) this.#pump();
  }

  protected override leave(): void {
    // A generator cannot be closed while it runs: its signal tells it, and it is closed once it
    // yields.
    if (this.#isPumping) return;
    const source = this.#source;
    this.#source = undefined;
    if (source !== undefined) leave(source);
  }

  #pump(): void {
    if (this.#outlet.credit === 0) return;
    this.#isPumping = true;
    this.#produce().then(
      () => this.#pumped(undefined),
      (thrown: unknown) => this.#pumped(asMessageError(thrown)),
    );
  }

  async #produce(): Promise<void> {
    const source = this.#source;
    while (source !== undefined && !this.isEnded && this.#outlet.send()) {
      const result = await source.next();
      if (result.done === true) {
        this.#source = undefined;
        this.end(undefined);
        return;
      }
      if (!this.isEnded) this.deliver(result.value);
      this.#made += 1;
      // Without this, a producer and reader that never wait would block the event loop.
      if (this.#made % TURN === 0) await new Promise<void>((resolve) => nextTurn(resolve));
    }
  }

  #pumped(error: MessageError | undefined): void {
    this.#isPumping = false;
    if (error !== undefined) {
      this.#source = undefined;
      this.end(error);
    } else if (this.isEnded) {
      this.leave();
    } else {
      // Credit may have arrived since `#produce` last checked.
      this.#pump();
    }
  }
}

/** Closes a source of which no item was read. */
export function leaveItems(items: AsyncIterable<unknown> | Iterable<unknown>): void {
  try {
    leave(iteratorOf(items));
  } catch {
    // As in `leave`: the error has no receiver.
  }
}

function leave(source: AsyncIterator<unknown> | Iterator<unknown>): void {
  // The reader has gone, so an error of the closing producer has no receiver.
  const closing = new Promise((resolve) => resolve(source.return?.()));
  closing.catch(() => {});
}

function iteratorOf(
  items: AsyncIterable<unknown> | Iterable<unknown>,
): AsyncIterator<unknown> | Iterator<unknown> {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

export function isIterable(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  return typeof value === "object" && value !== null
    && (Symbol.asyncIterator in value || Symbol.iterator in value);
}

/**
 * Returns `true` if a result is read as a stream, and `false` if it is an answer. `ask` and
 * `stream` share this test, so that no message is both; the type of handlers follows the same rule.
 */
export function isStream(value: unknown): value is Items<unknown> {
  if (!isIterable(value)) return false;
  return Symbol.asyncIterator in value
    || !("length" in value || "size" in value || "entries" in value);
}
