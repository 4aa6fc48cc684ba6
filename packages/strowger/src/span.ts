import { badRequest, type MessageError } from "./error.js";

/**
 * The longest deadline in milliseconds, which is the limit of a frame: a little less than 50 days.
 */
const LONGEST = 0xffff_ffff;
/** The longest delay that timers of runtimes support; a longer one would fire at once. */
export const LONGEST_TIMER = 0x7fff_ffff;

/** Returns the error if a number of milliseconds is not a valid deadline. */
export function notDeadline(
  name: string,
  ms: number | undefined,
  most = LONGEST,
): MessageError | undefined {
  if (ms === undefined) return undefined;
  // Check the type too: a string would be compared as the number in it.
  if (typeof ms === "number" && ms > 0 && ms <= most) return undefined;
  return badRequest(`${name} is ${shown(ms)}: it is a number of milliseconds, more than 0 and`
    + ` at most ${most}`);
}

/**
 * Checks a configured deadline.
 *
 * @throws MessageError `bad-request` if it is invalid, for example because it would never expire.
 */
export function checkDeadline(name: string, ms: number | undefined, most = LONGEST): void {
  const error = notDeadline(name, ms, most);
  if (error !== undefined) throw error;
}

/**
 * Checks a delay or a time limit for shutdown, which may be 0.
 *
 * @throws MessageError `bad-request` if it is not a number of milliseconds, or would never expire.
 */
export function checkPause(name: string, ms: number | undefined, most = LONGEST): void {
  if (ms === undefined || (typeof ms === "number" && ms >= 0 && ms <= most)) return;
  throw badRequest(`${name} is ${shown(ms)}: it is a number of milliseconds, from 0 to ${most}`);
}

function shown(ms: unknown): string {
  return typeof ms === "string" ? JSON.stringify(ms) : String(ms);
}
