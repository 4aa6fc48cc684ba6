import { nextTurn } from "./clock.js";
import { Ring } from "./ring.js";

/** Whoever has messages to handle. */
export interface Runnable {
  /** Handles up to so many messages and returns how many it handled. */
  turn(budget: number): number;
  /** Whether it can handle more right now; if not, it schedules itself when it can. */
  rest(): boolean;
}

/** Messages of one actor before the next has its turn. */
const TURN = 64;
/** Messages of all actors before timers and sockets have theirs. */
const BUDGET = 1024;
const SOON = Promise.resolve();

/** Gives turns to actors, and now and then one to the event loop. */
export class Scheduler {
  readonly #ready = new Ring<Runnable>();
  #isPosted = false;
  #spent = 0;

  /** Has it run soon; it must not be scheduled already. */
  schedule(actor: Runnable): void {
    this.#ready.push(actor);
    if (!this.#isPosted) this.#post();
  }

  #post(): void {
    this.#isPosted = true;
    if (this.#spent < BUDGET) {
      void SOON.then(this.#run);
      return;
    }
    // Microtasks alone would keep the event loop waiting for as long as actors talk.
    this.#spent = 0;
    nextTurn(this.#run);
  }

  readonly #run = (): void => {
    while (this.#spent < BUDGET) {
      const actor = this.#ready.shift();
      if (actor === undefined) {
        this.#isPosted = false;
        return;
      }
      this.#spent += Math.max(1, actor.turn(TURN));
      if (!actor.rest()) this.#ready.push(actor);
    }
    this.#post();
  };
}
