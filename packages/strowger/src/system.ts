import { forgetful, typed } from "./actor.js";
import { type Clock, systemClock } from "./clock.js";
import type { Percentiles } from "./histogram.js";
import type {
  ActorInfo,
  LocalRef,
  AnyProtocol,
  DeadLetter,
  Make,
  Protocol,
  SpawnOptions,
} from "./protocol.js";
import { Router } from "./router.js";
import { Shared, type Trouble } from "./shared.js";
import { checkDeadline } from "./span.js";
import { Topic } from "./topic.js";

/** How a system is made. */
export interface SystemOptions {
  /** Milliseconds that an ask may take which says nothing else: 5000. */
  readonly deadlineMs?: number;
  /** Where time comes from; `strowger/testing` has one that a test moves. */
  readonly clock?: Clock;
}

/** The figures of a system at one moment. */
export interface SystemStats {
  readonly actors: number;
  /** Messages that wait, in all mailboxes. */
  readonly depth: number;
  readonly deadLetters: number;
  /** How long questions took that had an answer, in nanoseconds; every 16th is timed. */
  readonly askNs: Percentiles;
}

/**
 * Actors that run in this process.
 *
 * @example
 * const system = new ActorSystem();
 * const counter = system.spawn<Counter>("counter", () => {
 *   let count = 0;
 *   return { handle: { add: (by) => (count += by) } };
 * });
 * await counter.ask("add", 2); // 2
 */
export class ActorSystem {
  readonly #shared: Shared;
  readonly #topics = new Map<string, Topic<unknown>>();
  /** Brings messages in envelopes to actors. */
  readonly router: Router;
  /** Messages that nobody handled. */
  readonly deadLetters: Topic<DeadLetter>;
  /** What was thrown while actors ended. */
  readonly troubles: Topic<Trouble>;

  /** @throws MessageError `bad-request` if `deadlineMs` is no deadline. */
  constructor(options: SystemOptions = {}) {
    checkDeadline("deadlineMs", options.deadlineMs);
    this.#shared = new Shared(options.clock ?? systemClock, options.deadlineMs ?? 5000);
    this.router = new Router(this.#shared);
    this.deadLetters = this.#shared.deadLetters;
    this.troubles = this.#shared.troubles;
  }

  /**
   * Starts an actor at a path. `make` is called at once, and again for each restart.
   *
   * @throws MessageError `refused` if there is one already, `bad-request` if the path is none or a
   * time of its options would never end.
   */
  spawn<P extends Protocol<P>>(
    path: string,
    make: Make<P>,
    options: SpawnOptions = {},
  ): LocalRef<P> {
    return typed<P>(this.#shared.spawn(path, forgetful(make), options, undefined));
  }

  /** The actor at a path, if there is one; its messages are checked by nobody but itself. */
  find(path: string): LocalRef<AnyProtocol> | undefined {
    const cell = this.#shared.cells.get(path);
    return cell === undefined ? undefined : typed<AnyProtocol>(cell);
  }

  /** The topic of this name; all who use it have to agree on `T`. */
  topic<T>(name: string): Topic<T> {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      topic = new Topic();
      this.#topics.set(name, topic);
    }
    return agreed<T>(topic);
  }

  /** The figures of each actor. */
  actors(): ActorInfo[] {
    return Array.from(this.#shared.cells.values(), (cell) => cell.info());
  }

  /** The figures of the system. */
  stats(): SystemStats {
    let depth = 0;
    for (const cell of this.#shared.cells.values()) depth += cell.info().depth;
    return {
      actors: this.#shared.cells.size,
      depth,
      deadLetters: this.#shared.deadCount,
      askNs: this.#shared.latency.percentiles(),
    };
  }

  /** Stops all actors, children before parents, and ends all topics. */
  async shutdown(): Promise<void> {
    this.#shared.isClosed = true;
    await Promise.all(Array.from(this.#shared.cells.values(), (cell) => cell.stop()));
    for (const topic of this.#topics.values()) topic.close();
    this.deadLetters.close();
    this.troubles.close();
    this.#shared.wheel.close();
  }
}

function agreed<T>(topic: Topic<unknown>): Topic<T>;
function agreed(topic: unknown): unknown {
  return topic;
}
