/** The suffix of row ids under Bun. */
export const suffix = "bun" in process.versions ? "_bun" : "";

function list(name: string): readonly string[] | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1]?.split(",");
}

const only = list("--only");
const except = list("--except") ?? [];

/** `true` if the run measures only briefly. */
export const quick = process.argv.includes("--quick");

/**
 * Returns `true` if a row is to be measured: in `--only IDS` if given, and not in `--except IDS`.
 */
export function isWanted(id: string): boolean {
  const here = id + suffix;
  return (only === undefined || only.includes(here)) && !except.includes(here);
}

/** Number of messages in a burst. The measured time is divided by the same number. */
export const TELLS = 512;

/** A number of operations that are timed together, and that check their own result. */
export interface Work {
  readonly operations: number;
  readonly work: () => unknown;
}

/** A row of the report, with one figure for each subject. */
export interface Row {
  readonly id: string;
  readonly works: readonly (readonly [subject: string, work: Work])[];
  /** `true` if the 99th percentile has a row as well. */
  readonly tail?: boolean;
}

export function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(`wrong result: ${what}`);
}
