import { type Clock, nextTurn } from "./clock.js";

/**
 * A clock that stands until a test moves it.
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

  /** Moves on, through each alarm on the way; actors come to rest in between. */
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

  /** Lets actors handle what is there, without moving on. */
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

/** Turns of the event loop: each empties the queue of microtasks. */
const TURNS = 3;
