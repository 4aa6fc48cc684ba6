import type { Clock } from "./clock.js";

/** Milliseconds of a slot: how late a timer may be, besides what the event loop takes. */
export const TICK = 8;
const SLOTS = 256;
const GONE = -1;

/** Something that may become due; it is its own place in the wheel. */
export abstract class Timer {
  /** @internal */ before: Timer | undefined;
  /** @internal */ behind: Timer | undefined;
  /** Milliseconds to wait while it is new, then the tick at which it is due. */
  /** @internal */ due = 0;

  abstract expire(): void;
}

/** A callback that is due after a while. */
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
 * All deadlines of a system, with one timer of the runtime below them.
 *
 * Adding reads no clock: what is new gets its place at the next tick, counted from then. So a
 * timer is never early, and late by three ticks at most.
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

  /** Has a timer expire after so many milliseconds. */
  add(timer: Timer, ms: number): void {
    timer.due = ms;
    const first = this.#fresh.isEmpty();
    this.#fresh.push(timer);
    if (first) this.#wake(this.#done + 1);
  }

  /** Takes a timer out; nothing happens if it is not in. */
  remove(timer: Timer): void {
    unlink(timer);
    timer.due = GONE;
  }

  /** Stops everything; nothing expires any more. */
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
    // An idle wheel is behind the clock; its next tick is a whole one from now.
    this.#takeBack = this.#clock.after(Math.min(ms === 1 ? TICK : ms, 0x7fff_ffff), this.#tick);
  }

  readonly #tick = (): void => {
    this.#takeBack = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    const now = Math.floor((this.#clock.now() - this.#begun) / TICK);
    const due: Timer[] = [];
    const sweep = Math.min(now - this.#done, SLOTS);
    for (let at = now - sweep + 1; at <= now; at += 1) this.#sweep(at, now, due);
    this.#done = now;
    for (let timer = this.#fresh.shift(); timer !== undefined; timer = this.#fresh.shift()) {
      timer.due = now + Math.max(1, Math.ceil(timer.due / TICK) + 1);
      this.#slots[timer.due % SLOTS]?.push(timer);
    }
    // Who expires may take out others that are due as well.
    for (const timer of due) if (timer.due !== GONE) timer.expire();
    this.#plan();
  };

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
