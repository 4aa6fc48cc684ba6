import type { Clock } from "./clock.js";
import { throwLater } from "./error.js";

/** Length of a slot in milliseconds, which limits the precision of timers. */
export const TICK = 8;
const SLOTS = 256;
const GONE = -1;

/** A timer, which also knows its place in the wheel. */
export abstract class Timer {
  /** The set of timers that it is in, and its index there. */
  /** @internal */ among: Timers | undefined = undefined;
  /** @internal */ at = 0;
  /** The delay in milliseconds while the timer is new, then the tick at which it is due. */
  /** @internal */ due = 0;

  abstract expire(): void;
}

/** A timer that calls back. */
export class Alarm extends Timer {
  readonly #callback: () => void;

  constructor(callback: () => void) {
    super();
    this.#callback = callback;
  }

  expire(): void {
    this.#callback();
  }
}

/**
 * A set of timers in an array. Removing one moves the last one into its place: this writes fewer
 * pointers than a linked list, and each pointer to a new object costs more than the comparison.
 */
class Timers {
  #timers: Timer[] = [];

  get size(): number {
    return this.#timers.length;
  }

  add(timer: Timer): void {
    timer.among = this;
    timer.at = this.#timers.length;
    this.#timers.push(timer);
  }

  remove(timer: Timer): void {
    timer.among = undefined;
    const last = this.#timers.pop();
    if (last === undefined || last === timer) return;
    this.#timers[timer.at] = last;
    last.at = timer.at;
  }

  /** Removes and returns all timers. */
  takeAll(): readonly Timer[] {
    const timers = this.#timers;
    if (timers.length > 0) this.#timers = [];
    for (const timer of timers) timer.among = undefined;
    return timers;
  }
}

/**
 * All deadlines of a system, driven by a single timer of the runtime.
 *
 * Adding a timer does not read the clock: a new timer gets its slot at the next tick, and its delay
 * counts from there. So a timer never expires early, and at most three ticks late.
 */
export class TimerWheel {
  readonly #clock: Clock;
  readonly #begun: number;
  readonly #fresh = new Timers();
  readonly #slots: readonly Timers[] = Array.from({ length: SLOTS }, () => new Timers());
  #done = 0;
  #wakeAt = Number.POSITIVE_INFINITY;
  #takeBack: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#begun = clock.now();
  }

  /** Schedules a timer to expire after `ms` milliseconds. */
  add(timer: Timer, ms: number): void {
    timer.due = ms;
    this.#fresh.add(timer);
    if (this.#fresh.size === 1) this.#wake(this.#done + 1);
  }

  /** Removes a timer; does nothing if it is not scheduled. */
  remove(timer: Timer): void {
    timer.among?.remove(timer);
    timer.due = GONE;
  }

  /** Stops the wheel; no timer expires afterwards. */
  close(): void {
    this.#takeBack?.();
    this.#takeBack = undefined;
    this.#wakeAt = Number.NEGATIVE_INFINITY;
  }

  #wake(tick: number): void {
    if (tick >= this.#wakeAt) return;
    this.#takeBack?.();
    this.#wakeAt = tick;
    const ms = Math.max(1, Math.ceil(this.#begun + tick * TICK - this.#clock.now()));
    // An idle wheel lags behind the clock: wait a whole tick from now.
    this.#takeBack = this.#clock.after(Math.min(ms === 1 ? TICK : ms, 0x7fff_ffff), this.#tick);
  }

  readonly #tick = (): void => {
    this.#takeBack = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    const now = Math.floor((this.#clock.now() - this.#begun) / TICK);
    const due: Timer[] = [];
    // After more than a round every slot is swept once: `due` tells which timers have expired.
    const sweep = Math.min(now - this.#done, SLOTS);
    for (let at = now - sweep + 1; at <= now; at += 1) this.#sweep(at, now, due);
    this.#done = now;
    for (const timer of this.#fresh.takeAll()) {
      timer.due = now + Math.max(1, Math.ceil(timer.due / TICK) + 1);
      this.#slots[timer.due % SLOTS]?.add(timer);
    }
    // An expiring timer may remove others that are due as well.
    for (const timer of due) {
      if (timer.due === GONE) continue;
      try {
        timer.expire();
      } catch (thrown) {
        throwLater(thrown);
      }
    }
    this.#plan();
  };

  /** Moves the due timers of a slot to `due`. Timers of later rounds stay in the slot. */
  #sweep(slot: number, now: number, due: Timer[]): void {
    const timers = this.#slots[slot % SLOTS];
    for (const timer of timers?.takeAll() ?? []) {
      if (timer.due <= now) due.push(timer);
      else timers?.add(timer);
    }
  }

  /** Wakes at the next slot that has a timer, or at the next tick if there are new timers. */
  #plan(): void {
    if (this.#fresh.size > 0) {
      this.#wake(this.#done + 1);
      return;
    }
    for (let ahead = 1; ahead <= SLOTS; ahead += 1) {
      if ((this.#slots[(this.#done + ahead) % SLOTS]?.size ?? 0) > 0) {
        this.#wake(this.#done + ahead);
        return;
      }
    }
  }
}
