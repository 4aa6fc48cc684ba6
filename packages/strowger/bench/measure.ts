// Times calls of a work once it is as fast as it gets.
import { check, quick, type Work } from "./row.js";

/** Length in nanoseconds of one sample: many calls of a work, timed together. */
const SAMPLE = quick ? 1e6 : 3e6;
/** Number of samples of each work. */
const SAMPLES = quick ? 40 : 300;
/** Number of samples that have to be no faster than as many before them. */
const WINDOW = 8;
/** How much faster they may be. */
const STABLE = 0.05;
/** The least and the most time in nanoseconds to warm up a work. */
const LEAST = 1e8;
const MOST = 2e9;
/** Time in milliseconds in which calls are timed one by one for a tail. */
const TAIL = quick ? 500 : 3000;

/** Calls a work `calls` times, and returns the nanoseconds that a call took. */
type Loop = (calls: number) => Promise<number>;

/** The measured times of a work in nanoseconds. */
export interface Measured {
  /** Median of the samples. */
  readonly median: number;
  /** The fastest sample, which says more than the median on a machine that is busy. */
  readonly least: number;
  /** Distance of the quartiles, as a part of the median. */
  readonly spread: number;
  /** The 99th percentile of calls that were timed one by one. */
  readonly p99: number | undefined;
  /** Number of calls. */
  readonly calls: number;
}

/**
 * Measures works that take turns: first until none of them gets faster, then sample by sample. So
 * all run in the same state of the compiler, and a slow moment of the machine slows all of them.
 */
export async function measure(works: readonly Work[], hasTail: boolean): Promise<Measured[]> {
  const states = await Promise.all(works.map(async ({ work }) => {
    const loop = await compile(work);
    return { loop, calls: 1, spent: 0, took: [] as number[], singles: [] as number[] };
  }));
  const warm = states.map(() => false);
  while (warm.includes(false)) {
    for (const [at, state] of states.entries()) {
      const ns = await state.loop(state.calls);
      state.took.push(ns);
      state.spent += ns * state.calls;
      state.calls = Math.max(1, Math.round(SAMPLE / Math.min(...state.took.slice(-WINDOW))));
      warm[at] = state.spent > MOST || (state.spent > LEAST && isStable(state.took));
    }
  }
  for (const state of states) state.took = [];
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    for (const { loop, calls, took } of states) took.push(await loop(calls));
  }
  for (const begun = performance.now(); hasTail && performance.now() - begun < TAIL; ) {
    for (const { loop, singles } of states) singles.push(await loop(1));
  }
  return states.map(({ calls, took, singles }) => {
    const median = percentile(took, 0.5);
    const spread = (percentile(took, 0.75) - percentile(took, 0.25)) / median;
    const p99 = hasTail ? percentile(singles, 0.99) : undefined;
    const least = Math.min(...took);
    return { median, least, spread, p99, calls: calls * SAMPLES + singles.length };
  });
}

/** Compiles a loop for one work only, because a call in a shared loop would not be inlined. */
async function compile(work: () => unknown): Promise<Loop> {
  const first = work();
  const call = first instanceof Promise ? "await work()" : "work()";
  await first;
  return new Function("work", `return async (calls) => {
    const begun = performance.now();
    for (let n = 0; n < calls; n += 1) ${call};
    return (performance.now() - begun) * 1e6 / calls;
  }`)(work);
}

/** Compares the fastest samples: a busy machine only adds time. */
function isStable(took: readonly number[]): boolean {
  if (took.length < 2 * WINDOW) return false;
  const before = Math.min(...took.slice(-2 * WINDOW, -WINDOW));
  return Math.min(...took.slice(-WINDOW)) > before * (1 - STABLE);
}

/** Returns the value below which the part (0 to 1) of all values lie. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.floor((sorted.length - 1) * part)];
  check(value !== undefined, "there are values");
  return value ?? 0;
}
