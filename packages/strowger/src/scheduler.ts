import { nextTurn } from "./clock.js";
import { throwLater } from "./error.js";
import { Ring } from "./ring.js";

/** Something that handles messages in turns, such as an actor. */
export interface Runnable {
  /** Handles at most `budget` messages and returns how many it handled. */
  turn(budget: number): number;
  /**
   * Returns `true` if the runnable is idle now, and schedules itself when a message arrives.
   * Returns `false` if there is more to handle right now.
   */
  rest(): boolean;
}

/** Maximum number of messages of one actor per turn. */
const TURN = 64;
/** Maximum number of messages of all actors before timers and sockets get a turn. */
const BUDGET = 1024;
const SOON = Promise.resolve();

/** Gives turns to actors, and regularly yields to the event loop. */
export class Scheduler {
  readonly #ready = new Ring<Runnable>();
  #isPosted = false;
  /** `true` while a posted run waits for a turn of the event loop. */
  #isFar = false;
  #spent = 0;

  /** `true` if runnable actors run in the next microtask. */
  get isNear(): boolean {
    return this.#spent < BUDGET && !this.#isFar;
  }

  /** Makes an idle actor runnable; it must not be scheduled already. */
  schedule(actor: Runnable): void {
    this.#ready.push(actor);
    if (!this.#isPosted) this.#post();
  }

  /**
   * Makes an idle actor runnable, or none if it is already, and returns a promise of the result of
   * an ask after its turn. The microtask of the promise is that of the run as well: `schedule` and
   * a promise that is resolved later would be two. Needs `isNear`.
   */
  scheduleFor(actor: Runnable | undefined, ask: { result(): unknown }): Promise<unknown> {
    if (actor !== undefined) this.#ready.push(actor);
    this.#isPosted = true;
    return SOON.then(() => {
      this.#runSoon();
      return ask.result();
    });
  }

  #post(): void {
    this.#isPosted = true;
    if (this.#spent < BUDGET) {
      void SOON.then(this.#runSoon);
      return;
    }
    // Microtasks alone would block the event loop for as long as actors send each other messages.
    this.#spent = 0;
    this.#isFar = true;
    nextTurn(this.#run);
  }

  /** Runs in a microtask, unless an earlier one has used up the budget. */
  readonly #runSoon = (): void => {
    if (!this.#isFar) this.#run();
  };

  readonly #run = (): void => {
    this.#isFar = false;
    while (this.#spent < BUDGET) {
      const actor = this.#ready.shift();
      if (actor === undefined) {
        this.#isPosted = false;
        return;
      }
      try {
        this.#spent += Math.max(1, actor.turn(TURN));
      } catch (thrown) {
        // An actor catches what its handlers throw. Anything else must not stop the other actors.
        this.#spent += 1;
        throwLater(thrown);
      }
      if (!actor.rest()) this.#ready.push(actor);
    }
    this.#post();
  };
}
