import { onAbort } from "./delivery.js";
import { throwLater } from "./error.js";
import { Ring } from "./ring.js";

/** Options of a subscription. */
export interface SubscribeOptions {
  /**
   * Maximum number of values that wait for this reader. Beyond it, the oldest is missed. Default:
   * 64.
   */
  readonly capacity?: number;
  /** Ends the subscription. */
  readonly signal?: AbortSignal;
}

/** One subscription to a topic. Leaving the loop ends it. */
export interface TopicReader<T> extends AsyncIterableIterator<T, undefined> {
  /** Number of values missed because this reader was slower than its capacity. */
  readonly missed: number;
}

/**
 * Publishes values to any number of readers. Publishing never waits: a slow reader misses values,
 * and knows how many.
 *
 * @example
 * for await (const alarm of system.topic<Alarm>("alarms").subscribe()) show(alarm);
 */
export class Topic<T> {
  readonly #readers = new Set<Reader<T>>();
  readonly #listeners = new Set<(value: T) => void>();

  /** Number of readers and listeners. */
  get subscribers(): number {
    return this.#readers.size + this.#listeners.size;
  }

  /** Publishes a value to all readers and listeners, and returns their number. */
  publish(value: T): number {
    for (const reader of this.#readers) reader.offer(value);
    for (const listener of this.#listeners) {
      try {
        listener(value);
      } catch (thrown) {
        // The error is the listener's, and the publisher cannot handle it.
        throwLater(thrown);
      }
    }
    return this.subscribers;
  }

  /** Reads values published from now on. */
  subscribe(options: SubscribeOptions = {}): TopicReader<T> {
    const reader = new Reader<T>(options.capacity ?? 64, () => this.#readers.delete(reader));
    this.#readers.add(reader);
    if (options.signal !== undefined) reader.forget = onAbort(options.signal, () => reader.close());
    return reader;
  }

  /**
   * Calls back with each value, for example to tell it to an actor. Returns a function that stops
   * listening.
   *
   * @example
   * topic.listen((alarm) => void operator.tell("alarm", alarm));
   */
  listen(callback: (value: T) => void): () => void {
    // A new function, so that the same callback can listen twice.
    const listener = (value: T): void => callback(value);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Ends all subscriptions. */
  close(): void {
    for (const reader of this.#readers) reader.close();
    this.#listeners.clear();
  }
}

class Reader<T> implements TopicReader<T> {
  missed = 0;
  forget: () => void = () => {};
  readonly #capacity: number;
  readonly #leave: () => void;
  readonly #values = new Ring<{ readonly value: T }>();
  readonly #waiting = new Ring<(result: IteratorResult<T, undefined>) => void>();
  #isClosed = false;

  constructor(capacity: number, leave: () => void) {
    this.#capacity = Math.max(1, capacity);
    this.#leave = leave;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  offer(value: T): void {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting({ done: false, value });
      return;
    }
    if (this.#values.length >= this.#capacity) {
      this.#values.shift();
      this.missed += 1;
    }
    this.#values.push({ value });
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const held = this.#values.shift();
    if (held !== undefined) return Promise.resolve({ done: false, value: held.value });
    if (this.#isClosed) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.close();
    while (this.#values.length > 0) this.#values.shift();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Accepts no more values; queued values can still be read. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.forget();
    this.#leave();
    for (let each = this.#waiting.shift(); each !== undefined; each = this.#waiting.shift()) {
      each({ done: true, value: undefined });
    }
  }
}
