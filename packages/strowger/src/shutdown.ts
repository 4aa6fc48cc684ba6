/** Calls back after some milliseconds. Returns a function that cancels the call. */
interface Timing {
  wheelAfter(ms: number, callback: () => void): () => void;
}

/**
 * The time that one actor has to end: for its current message, its children and its `postStop`
 * together. A parent that reaches its own limit ends it early.
 */
export class ShutdownLimit {
  readonly #timing: Timing;
  #ms: number;
  #reached: Promise<false> | undefined = undefined;
  #resolve: (() => void) | undefined = undefined;
  #undo: (() => void) | undefined = undefined;

  constructor(timing: Timing, ms: number) {
    this.#timing = timing;
    this.#ms = ms;
  }

  /**
   * Waits for a promise. Resolves with `false` if the limit is reached first. The time counts from
   * the first wait: most actors end without any, and need no timer.
   */
  wait(promise: Promise<unknown>): Promise<boolean> {
    return Promise.race([promise.then(() => true), (this.#reached ??= this.#start())]);
  }

  /** Ends all waits. */
  expire(): void {
    this.#ms = 0;
    this.close();
    this.#resolve?.();
  }

  /** Stops the timer, when there is nothing more to wait for. */
  close(): void {
    this.#undo?.();
    this.#undo = undefined;
  }

  #start(): Promise<false> {
    return new Promise((resolve) => {
      this.#resolve = () => resolve(false);
      this.#undo = this.#timing.wheelAfter(this.#ms, () => this.expire());
    });
  }
}
