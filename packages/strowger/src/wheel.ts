import type { Clock } from "./clock.js";
import { throwLater } from "./error.js";

/** Length of a slot in milliseconds, which limits the precision of timers. */
export const TICK = 8;
const SLOTS = 256;
const GONE = -1;

/** A timer, which is also its own node in the lists of the wheel. */
export abstract class Timer {
  /** @internal */ before: Timer | undefined;
  /** @internal */ behind: Timer | undefined;
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

/** A circular doubly linked list of timers; the list itself is the sentinel. */
class List extends Timer {
  override before: Timer = this;
  override behind: Timer = this;

  expire(): void {}

  isEmpty(): boolean {
    return this.behind === this;
  }

  push(timer: Timer): void {
    const last = this.before;
    timer.before = last;
    timer.behind = this;
    last.behind = timer;
    this.before = timer;
  }

  shift(): Timer | undefined {
    const first = this.behind;
    if (first === this) return undefined;
    unlink(first);
    return first;
  }
}

function unlink(timer: Timer): void {
  const { before, behind } = timer;
  if (before === undefined || behind === undefined) return;
  before.behind = behind;
  behind.before = before;
  timer.before = undefined;
  timer.behind = undefined;
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
  readonly #fresh = new List();
  readonly #slots: readonly List[] = Array.from({ length: SLOTS }, () => new List());
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
    const first = this.#fresh.isEmpty();
    this.#fresh.push(timer);
    if (first) this.#wake(this.#done + 1);
  }

  /** Removes a timer; does nothing if it is not scheduled. */
  remove(timer: Timer): void {
    unlink(timer);
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
    for (let timer = this.#fresh.shift(); timer !== undefined; timer = this.#fresh.shift()) {
      timer.due = now + Math.max(1, Math.ceil(timer.due / TICK) + 1);
      this.#slots[timer.due % SLOTS]?.push(timer);
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
    const list = this.#slots[slot % SLOTS];
    if (list === undefined) return;
    for (let timer = list.behind; timer !== list; ) {
      const { behind } = timer;
      if (timer.due <= now) {
        unlink(timer);
        due.push(timer);
      }
      if (behind === undefined) return;
      timer = behind;
    }
  }

  /** Wakes at the next slot that has a timer, or at the next tick if there are new timers. */
  #plan(): void {
    if (!this.#fresh.isEmpty()) {
      this.#wake(this.#done + 1);
      return;
    }
    for (let ahead = 1; ahead <= SLOTS; ahead += 1) {
      if (this.#slots[(this.#done + ahead) % SLOTS]?.isEmpty() === false) {
        this.#wake(this.#done + ahead);
        return;
      }
    }
  }
}
