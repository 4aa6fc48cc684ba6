/** Under Bun the ids of rows end so. */
export const suffix = "bun" in process.versions ? "_bun" : "";

function list(name: string): readonly string[] | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1]?.split(",");
}

const only = list("--only");
const except = list("--except") ?? [];

/** Whether to measure for a moment only. */
export const quick = process.argv.includes("--quick");

/** Whether a row is to be measured: one of `--only IDS`, none of `--except IDS`. */
export function isWanted(id: string): boolean {
  const here = id + suffix;
  return (only === undefined || only.includes(here)) && !except.includes(here);
}

/** Messages of a burst; what it is divided by has to be the number of messages in it. */
export const TELLS = 512;

/** What is timed: so many operations, which check their own result. */
export interface Work {
  readonly operations: number;
  readonly work: () => unknown;
}

/** One figure for each subject. */
export interface Row {
  readonly id: string;
  readonly works: readonly (readonly [subject: string, work: Work])[];
  /** Whether the slowest of a hundred has a row as well. */
  readonly tail?: boolean;
}

export function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`wrong result: ${what}`);
}
