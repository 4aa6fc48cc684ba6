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
import { Shared } from "./shared.js";
import { checkDeadline } from "./span.js";
import type { Topic } from "./topic.js";
import type { Trouble } from "./trouble.js";

/** Options of a system. */
export interface SystemOptions {
  /** Deadline in milliseconds of asks that give none. Default: 5000. */
  readonly deadlineMs?: number;
  /** The source of time; `strowger/testing` has a clock that a test advances. */
  readonly clock?: Clock;
}

/** The stats of a system at one moment. */
export interface SystemStats {
  readonly actors: number;
  /** Number of queued messages in all mailboxes. */
  readonly depth: number;
  readonly deadLetters: number;
  /** Latency of answered asks in nanoseconds; one in 16 is sampled. */
  readonly askNs: Percentiles;
}

/**
 * A system of actors that run in this process.
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
  /** Routes messages in envelopes to actors. */
  readonly router: Router;
  /**
   * Publishes messages that no actor handled. What a subscriber causes by sending on what it hears
   * is counted in `stats`, and not published.
   */
  readonly deadLetters: Topic<DeadLetter>;
  /**
   * Publishes failures of actors and of listeners. An error of a listener of `troubles` itself is
   * written to standard error, as is that of any listener while `troubles` has none.
   */
  readonly troubles: Topic<Trouble>;

  /** @throws MessageError `bad-request` if `deadlineMs` is not a valid deadline. */
  constructor(options: SystemOptions = {}) {
    checkDeadline("deadlineMs", options.deadlineMs);
    this.#shared = new Shared(options.clock ?? systemClock, options.deadlineMs ?? 5000);
    this.router = new Router(this.#shared);
    this.deadLetters = this.#shared.deadLetters;
    this.troubles = this.#shared.troubles;
  }

  /**
   * Starts an actor at a path. Calls `make` at once, and again for each restart.
   *
   * @throws MessageError `refused` if there is already an actor at the path or the system is shut
   * down; `bad-request` if the path or a time in the options is invalid.
   */
  spawn<P extends Protocol<P>>(
    path: string,
    make: Make<P>,
    options: SpawnOptions = {},
  ): LocalRef<P> {
    return typed<P>(this.#shared.spawn(path, forgetful(make), options, undefined));
  }

  /**
   * Returns the actor at a path, if there is one. Only the actor itself checks the messages it is
   * sent.
   */
  find(path: string): LocalRef<AnyProtocol> | undefined {
    const cell = this.#shared.cells.get(path);
    return cell === undefined ? undefined : typed<AnyProtocol>(cell);
  }

  /** Returns the topic of this name. All users of the topic have to agree on `T`. */
  topic<T>(name: string): Topic<T> {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      topic = this.#shared.topic<unknown>(name);
      this.#topics.set(name, topic);
    }
    return agreed<T>(topic);
  }

  /** Returns the stats of each actor. */
  actors(): ActorInfo[] {
    return Array.from(this.#shared.cells.values(), (cell) => cell.info());
  }

  /** Returns the stats of the system. */
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

  /** Stops all actors, each with its children within its limit, and closes all topics. */
  async shutdown(): Promise<void> {
    this.#shared.isClosed = true;
    const roots = [...this.#shared.cells.values()].filter((cell) => cell.isRoot);
    await Promise.all(roots.map((cell) => cell.stop()));
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
