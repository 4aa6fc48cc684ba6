import { onAbort } from "./delivery.js";
import { MessageError } from "./error.js";
import { Ring } from "./ring.js";
import { callSafely } from "./thenable.js";

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
 * Receives the error of a listener, and whether it is the first of that listener. Must not throw.
 */
export type ListenerFailed = (error: unknown, isFirst: boolean) => void;

/** Returns a function that receives the errors of one listener. */
export function errorsTo(failed: ListenerFailed): (error: unknown) => void {
  let isFirst = true;
  return (error) => {
    failed(error, isFirst);
    isFirst = false;
  };
}

/** One registration of a callback. */
interface Listener<T> {
  readonly callback: (value: T) => unknown;
  readonly caught: (error: unknown) => void;
  isListening: boolean;
}

interface Nested<T> {
  readonly listeners: readonly Listener<T>[];
  readonly value: T;
}

/** Maximum number of values that listeners may publish to their own topic because of one value. */
const MOST_NESTED = 65_536;

/**
 * Publishes values to any number of readers. Publishing never waits: a slow reader misses values,
 * and knows how many.
 *
 * @example
 * for await (const alarm of system.topic<Alarm>("alarms").subscribe()) show(alarm);
 */
export class Topic<T> {
  readonly #failed: ListenerFailed;
  readonly #readers = new Set<Reader<T>>();
  /** Replaced, never modified: a running `publish` goes on with those that it began with. */
  #listeners: readonly Listener<T>[] = [];
  #nested: Ring<Nested<T>> | undefined;
  #nestedCount = 0;
  #isPublishing = false;

  /** @internal */
  constructor(failed: ListenerFailed) {
    this.#failed = failed;
  }

  /** Number of readers and listeners. */
  get subscribers(): number {
    return this.#readers.size + this.#listeners.length;
  }

  /** `true` while listeners are called. @internal */
  get isPublishing(): boolean {
    return this.#isPublishing;
  }

  /**
   * Publishes a value to all readers and listeners, and returns their number.
   *
   * All of them get values in the same order: a value that a listener publishes to this topic
   * reaches the listeners after the value that it was called with. An error of a listener is
   * published to `troubles`, and the others are called nevertheless.
   */
  publish(value: T): number {
    const count = this.subscribers;
    for (const reader of this.#readers) reader.offer(value);
    if (this.#listeners.length > 0) this.#callListeners(value);
    return count;
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
   * An error of the callback is published to `troubles`, and so is the rejection of its promise,
   * which is not waited for. Listening continues.
   *
   * @example
   * topic.listen((alarm) => void operator.tell("alarm", alarm));
   */
  listen(callback: (value: T) => unknown): () => void {
    const listener = { callback, caught: errorsTo(this.#failed), isListening: true };
    this.#listeners = [...this.#listeners, listener];
    return () => {
      listener.isListening = false;
      this.#listeners = this.#listeners.filter((each) => each !== listener);
    };
  }

  /** Ends all subscriptions. */
  close(): void {
    for (const reader of this.#readers) reader.close();
    for (const listener of this.#listeners) listener.isListening = false;
    this.#listeners = [];
  }

  #callListeners(value: T): void {
    if (this.#isPublishing) {
      this.#postpone(value);
      return;
    }
    this.#isPublishing = true;
    this.#call(this.#listeners, value);
    const nested = this.#nested;
    for (let each = nested?.shift(); each !== undefined; each = nested?.shift()) {
      this.#call(each.listeners, each.value);
    }
    this.#isPublishing = false;
    this.#nestedCount = 0;
  }

  /** Keeps a value that a listener publishes until all have been called with the one before. */
  #postpone(value: T): void {
    this.#nestedCount += 1;
    if (this.#nestedCount <= MOST_NESTED) {
      (this.#nested ??= new Ring()).push({ listeners: this.#listeners, value });
    } else if (this.#nestedCount === MOST_NESTED + 1) {
      const text = `listeners published ${MOST_NESTED} values to their own topic because of one,`
        + " which is the limit: they do not hear of further ones";
      this.#failed(new MessageError("full", text), true);
    }
  }

  #call(listeners: readonly Listener<T>[], value: T): void {
    for (const listener of listeners) {
      if (listener.isListening) callSafely(listener.caught, listener.callback, value);
    }
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
