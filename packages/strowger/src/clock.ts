/** Where time comes from: the system's, or one that a test moves. */
export interface Clock {
  /** Milliseconds since some moment; never goes back. */
  now(): number;
  /** Calls back once after so many milliseconds; the result takes that back. */
  after(ms: number, callback: () => void): () => void;
}

/** The clock on the wall. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Runs a callback after whatever input, output and timers are due. */
export const nextTurn: (callback: () => void) => void =
  typeof setImmediate === "function"
    ? (callback) => void setImmediate(callback)
    : (callback) => void setTimeout(callback, 0);
