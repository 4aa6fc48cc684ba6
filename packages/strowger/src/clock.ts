/** A source of time: the system's, or one that a test advances. */
export interface Clock {
  /** Returns milliseconds since an arbitrary moment; never decreases. */
  now(): number;
  /** Calls back once after `ms` milliseconds. Returns a function that cancels the call. */
  after(ms: number, callback: () => void): () => void;
}

/** The clock of the runtime. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Runs a callback after pending I/O and timers. */
export const nextTurn: (callback: () => void) => void =
  typeof setImmediate === "function"
    ? (callback) => void setImmediate(callback)
    : (callback) => void setTimeout(callback, 0);
