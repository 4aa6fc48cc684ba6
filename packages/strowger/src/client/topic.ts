import { asMessageError, isRecord, MessageError } from "../error.js";
import { callSafely } from "../thenable.js";
import {
  errorsTo,
  type ListenerFailed,
  type SubscribeOptions,
  type TopicReader,
} from "../topic.js";
import type { Connection } from "./connection.js";
import type { RemoteActor } from "./node.js";
import type { RemoteStream } from "./outgoing.js";

/** A topic in a node. */
export interface RemoteTopic<T> {
  /**
   * Reads values published from now on. A reader that is slower than its capacity misses values; a
   * reader whose connection is lost fails with `lost`.
   */
  subscribe(options?: SubscribeOptions): TopicReader<T>;
  /**
   * Calls back with each value, for example to tell it to an actor. Returns a function that stops
   * listening. Listening continues after a reconnection, but values published in between are
   * missed. `ended` is called when the node ends it, with the error if there is one.
   *
   * An error of a callback is published to the `troubles` of the node, and so is the rejection of
   * its promise, which is not waited for. Listening continues.
   *
   * @example
   * node.topic<SessionEvent>("n4/sessions").listen((event) => void log.tell("event", event));
   */
  listen(callback: (value: T) => unknown, ended?: (error?: MessageError) => unknown): () => void;
}

/**
 * Creates a topic from an actor that serves it as a stream. `failed` receives the errors of
 * listeners.
 */
export function remoteTopic<T>(
  actor: RemoteActor,
  connection: Connection,
  failed: ListenerFailed,
): RemoteTopic<T> {
  const subscribe = (options: SubscribeOptions = {}): TopicReader<T> => {
    const { signal } = options;
    const window = options.capacity ?? 64;
    const how = signal === undefined ? { window } : { window, signal };
    return new RemoteReader<T>(actor.stream("subscribe", undefined, how));
  };
  /** Reads until the node ends the topic; resolves with the error if there is one. */
  const read = async (
    signal: AbortSignal,
    heard: (value: T) => void,
  ): Promise<MessageError | undefined> => {
    for (;;) {
      try {
        await connection.opened();
        for await (const value of subscribe({ signal })) {
          // The rest of what the node sent before it heard of the cancel.
          if (signal.aborted) break;
          heard(value);
        }
        return undefined;
      } catch (thrown) {
        const { state } = connection;
        if (signal.aborted || state === "open" || state === "closed") return asMessageError(thrown);
      }
    }
  };
  return {
    subscribe,
    listen(callback, ended) {
      const abort = new AbortController();
      const { signal } = abort;
      const caught = errorsTo(failed);
      const heard = (value: T): void => callSafely(caught, callback, value);
      void read(signal, heard).then((error) => {
        if (signal.aborted || ended === undefined) return;
        if (error === undefined) callSafely(caught, ended);
        else callSafely(caught, ended, error);
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
      // Cancelling a reader ends it without an error, as in process.
      if (error.code === "cancelled") return { done: true, value: undefined };
      throw error;
    }
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    await this.#stream.return();
    return { done: true, value: undefined };
  }
}

// The caller and the node agreed on the type of the topic: there is nothing to check it against.
function agreed<T>(value: unknown): T;
function agreed(value: unknown): unknown {
  return value;
}
