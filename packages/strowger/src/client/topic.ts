import { asMessageError, isRecord, MessageError } from "../error.js";
import type { SubscribeOptions, TopicReader } from "../topic.js";
import type { Connection } from "./connection.js";
import type { RemoteActor } from "./node.js";
import type { RemoteStream } from "./outgoing.js";

/** A topic in a node. */
export interface RemoteTopic<T> {
  /**
   * Reads from now on. A reader that is slower than its capacity misses values; one whose
   * connection is lost ends with `failed`.
   */
  subscribe(options?: SubscribeOptions): TopicReader<T>;
  /**
   * Calls back with each value, such as to tell it to an actor; the result ends that. It goes on
   * when the node is connected again; what was published in between is missed. `ended` hears when
   * the node ends it, and why.
   *
   * @example
   * node.topic<SessionEvent>("n4/sessions").listen((event) => void log.tell("event", event));
   */
  listen(callback: (value: T) => void, ended?: (error?: MessageError) => void): () => void;
}

/** A topic at an actor that serves it as a stream. */
export function remoteTopic<T>(actor: RemoteActor, connection: Connection): RemoteTopic<T> {
  const subscribe = (options: SubscribeOptions = {}): TopicReader<T> => {
    const { signal } = options;
    const window = options.capacity ?? 64;
    const how = signal === undefined ? { window } : { window, signal };
    return new RemoteReader<T>(actor.stream("subscribe", undefined, how));
  };
  const listen = async (
    signal: AbortSignal,
    callback: (value: T) => void,
    ended: (error?: MessageError) => void,
  ): Promise<void> => {
    while (!signal.aborted) {
      try {
        await connection.opened();
        for await (const value of subscribe({ signal })) callback(value);
        if (!signal.aborted) ended();
        return;
      } catch (thrown) {
        if (!(thrown instanceof MessageError)) throw thrown;
        if (signal.aborted) return;
        if (connection.state === "open" || connection.state === "closed") {
          ended(thrown);
          return;
        }
      }
    }
  };
  return {
    subscribe,
    listen(callback, ended = () => {}) {
      const abort = new AbortController();
      listen(abort.signal, callback, ended).catch((thrown: unknown) => {
        // It is the listener's fault, and nothing that its publisher could mend.
        queueMicrotask(() => {
          throw thrown;
        });
      });
      return () => abort.abort();
    },
  };
}

class RemoteReader<T> implements TopicReader<T> {
  missed = 0;
  readonly #stream: RemoteStream;

  constructor(stream: RemoteStream) {
    this.#stream = stream;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    try {
      const result = await this.#stream.next();
      if (result.done === true) return { done: true, value: undefined };
      const item = result.value;
      if (!isRecord(item) || !("value" in item)) {
        throw new MessageError("protocol", "an item of a topic has a value");
      }
      if (typeof item["missed"] === "number") this.missed += item["missed"];
      return { done: false, value: agreed<T>(item["value"]) };
    } catch (thrown) {
      const error = asMessageError(thrown);
      // Whoever cancels a reader wants its end, as in process.
      if (error.code === "cancelled") return { done: true, value: undefined };
      throw error;
    }
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    await this.#stream.return();
    return { done: true, value: undefined };
  }
}

// Who uses a topic has agreed on its type with the node: nothing else could check it.
function agreed<T>(value: unknown): T;
function agreed(value: unknown): unknown {
  return value;
}
