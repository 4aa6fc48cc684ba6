import { type Clock, nextTurn } from "./clock.js";

/**
 * A clock that stands still until a test advances it.
 *
 * @example
 * const clock = new VirtualClock();
 * const system = new ActorSystem({ clock });
 * await clock.advance(5000);
 */
export class VirtualClock implements Clock {
  #now = 0;
  #alarms: { readonly at: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const alarm = { at: this.#now + ms, callback };
    this.#alarms.push(alarm);
    return () => {
      this.#alarms = this.#alarms.filter((each) => each !== alarm);
    };
  }

  /**
   * Advances the clock, and runs each alarm that becomes due. Actors handle their messages in
   * between.
   */
  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await this.settle();
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      const due = next;
      this.#now = Math.max(this.#now, due.at);
      this.#alarms = this.#alarms.filter((each) => each !== due);
      due.callback();
      await this.settle();
    }
    this.#now = until;
  }

  /** Lets actors handle their messages, without advancing the clock. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) {
      await new Promise<void>((resolve) => nextTurn(resolve));
    }
  }

  #next(until: number): { readonly at: number; readonly callback: () => void } | undefined {
    const due = this.#alarms.filter((each) => each.at <= until);
    return due.sort((a, b) => a.at - b.at)[0];
  }
}

/** Number of turns of the event loop to wait for; each empties the queue of microtasks. */
const TURNS = 3;
