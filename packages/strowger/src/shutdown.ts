import type { Clock } from "./clock.js";

/** The source of time of a {@link ShutdownLimit}. */
export interface Timing {
  readonly clock: Clock;
  wheelAfter(ms: number, callback: () => void): () => void;
}

/**
 * The time that one actor has to end: for its current message, its children and its `postStop`
 * together. A parent that reaches its own limit ends it early.
 */
export class ShutdownLimit {
  readonly #timing: Timing;
  readonly #until: number;
  #isOver = false;
  #reached: Promise<false> | undefined;
  #resolve: (() => void) | undefined;
  #undo: (() => void) | undefined;

  constructor(timing: Timing, ms: number) {
    this.#timing = timing;
    this.#until = timing.clock.now() + ms;
  }

  /** Waits for a promise. Resolves with `false` if the limit is reached first. */
  wait(promise: Promise<unknown>): Promise<boolean> {
    return Promise.race([promise.then(() => true), (this.#reached ??= this.#start())]);
  }

  /** Ends all waits. */
  readonly expire = (): void => {
    this.#isOver = true;
    this.close();
    this.#resolve?.();
  };

  /** Stops the timer, when there is nothing more to wait for. */
  close(): void {
    this.#undo?.();
    this.#undo = undefined;
  }

  // Most actors end without waiting, so there is no timer before the first wait.
  #start(): Promise<false> {
    return new Promise((resolve) => {
      this.#resolve = () => resolve(false);
      const left = this.#isOver ? 0 : this.#until - this.#timing.clock.now();
      this.#undo = this.#timing.wheelAfter(left, this.expire);
    });
  }
}
