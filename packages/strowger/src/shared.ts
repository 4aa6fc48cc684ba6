import { Cell } from "./actor.js";
import { address, type Address } from "./address.js";
import type { Clock } from "./clock.js";
import type { Delivery } from "./delivery.js";
import { type ErrorCode, MessageError, stackless } from "./error.js";
import { Histogram } from "./histogram.js";
import type { DeadLetter, SpawnOptions } from "./protocol.js";
import { Scheduler } from "./scheduler.js";
import { checkPause } from "./span.js";
import { Topic } from "./topic.js";
import { type ActorTrouble, type Trouble, Troubles, TurnBudget } from "./trouble.js";
import { Alarm, TimerWheel } from "./wheel.js";

/** Maximum number of dead letters that are published in one turn of the event loop. */
const LETTERS = 16_384;

/** One in `SAMPLE` asks is timed, because reading the clock twice costs as much as a message. */
const SAMPLE = 16;

/** The state shared by all actors of a system. */
export class Shared {
  readonly cells = new Map<string, Cell>();
  readonly scheduler = new Scheduler();
  readonly wheel: TimerWheel;
  readonly #reports = new Troubles();
  readonly troubles: Topic<Trouble> = this.#reports.topic;
  readonly deadLetters = this.topic<DeadLetter>("dead letters");
  readonly latency = new Histogram();
  readonly clock: Clock;
  readonly deadlineMs: number;
  deadCount = 0;
  isClosed = false;
  #asks = 0;
  /** The published letters that are still in memory. */
  readonly #letters = new WeakSet<object>();
  readonly #budget = new TurnBudget(LETTERS);

  constructor(clock: Clock, deadlineMs: number) {
    this.clock = clock;
    this.deadlineMs = deadlineMs;
    this.wheel = new TimerWheel(clock);
  }

  spawn(
    path: string,
    make: ConstructorParameters<typeof Cell>[2],
    options: SpawnOptions,
    parent: Cell | undefined,
  ): Cell {
    address(path);
    checkTimes(options);
    if (this.isClosed) throw new MessageError("refused", "the system is shut down");
    if (this.cells.has(path)) {
      throw new MessageError("refused", `there is an actor at ${path} already`);
    }
    return new Cell(this, path, make, options, parent);
  }

  /** Returns a function that records the time until it is called, for one in `SAMPLE` asks. */
  sample(): (() => void) | undefined {
    this.#asks = (this.#asks + 1) % SAMPLE;
    if (this.#asks !== 0) return undefined;
    const begun = this.clock.now();
    // In nanoseconds, so that the steps of the histogram are fine enough.
    return () => this.latency.record((this.clock.now() - begun) * 1e6);
  }

  nobody(path: string): MessageError {
    const text = `no actor at ${path}`;
    return stackless(() => new MessageError("unknown-target", text, { details: { path } }));
  }

  dead(cell: Cell, delivery: Delivery, code: ErrorCode): void {
    this.deadAt(cell.address, delivery.type, delivery.payload, code);
  }

  deadAt(to: Address, type: string, payload: unknown, code: ErrorCode): void {
    this.deadCount += 1;
    const { deadLetters } = this;
    if (deadLetters.subscribers === 0) return;
    // A subscriber that sends on what it hears, to an actor that has ended, would hear of that as
    // well, without end. The budget is for a subscriber that sends something else, later.
    if (deadLetters.isPublishing || this.#isLetter(payload) || !this.#budget.take()) return;
    const letter: DeadLetter = { to, type, payload, code };
    this.#letters.add(letter);
    deadLetters.publish(letter);
  }

  #isLetter(payload: unknown): boolean {
    return typeof payload === "object" && payload !== null && this.#letters.has(payload);
  }

  /** Creates a topic. */
  topic<T>(name: string): Topic<T> {
    return new Topic<T>(this.#reports.reporter(name));
  }

  /** Publishes a failure of an actor. */
  failed(cell: Cell, during: ActorTrouble["during"], incarnation: number, error: unknown): void {
    const { address } = cell;
    this.#reports.publish({ source: "actor", address, incarnation, during, error });
  }

  /**
   * Calls back after `ms` milliseconds, or at once for 0. Returns a function that cancels the call.
   */
  wheelAfter(ms: number, callback: () => void): () => void {
    if (ms <= 0) {
      callback();
      return () => {};
    }
    const alarm = new Alarm(callback);
    this.wheel.add(alarm, ms);
    return () => this.wheel.remove(alarm);
  }
}

/** Rejects times that would keep an actor from ending or restarting. */
function checkTimes({ shutdownMs, backoff, intensity }: SpawnOptions): void {
  checkPause("shutdownMs", shutdownMs);
  checkPause("backoff.initialMs", backoff?.initialMs);
  checkPause("backoff.maxMs", backoff?.maxMs);
  checkPause("intensity.withinMs", intensity?.withinMs);
}
