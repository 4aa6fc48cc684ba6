import { badRequest, type MessageError } from "./error.js";

/** The longest deadline in milliseconds: what a frame can say, a little less than 50 days. */
const LONGEST = 0xffff_ffff;
/** The longest time that the timers of runtimes hold; what is longer would be due at once. */
export const LONGEST_TIMER = 0x7fff_ffff;

/** Why a number of milliseconds is no deadline; nothing if it is one. */
export function notDeadline(
  name: string,
  ms: number | undefined,
  most = LONGEST,
): MessageError | undefined {
  if (ms === undefined) return undefined;
  // By its type as well: a text would be compared as the number in it.
  if (typeof ms === "number" && ms > 0 && ms <= most) return undefined;
  return badRequest(`${name} is ${shown(ms)}: it is a number of milliseconds, more than 0 and`
    + ` at most ${most}`);
}

/**
 * Checks a deadline where it is configured.
 *
 * @throws MessageError `bad-request` if it is none, so if it would never end.
 */
export function checkDeadline(name: string, ms: number | undefined, most = LONGEST): void {
  const error = notDeadline(name, ms, most);
  if (error !== undefined) throw error;
}

/**
 * Checks a pause, or a time to end in, which may be none at all.
 *
 * @throws MessageError `bad-request` if it is no time, or would never end.
 */
export function checkPause(name: string, ms: number | undefined, most = LONGEST): void {
  if (ms === undefined || (typeof ms === "number" && ms >= 0 && ms <= most)) return;
  throw badRequest(`${name} is ${shown(ms)}: it is a number of milliseconds, from 0 to ${most}`);
}

function shown(ms: unknown): string {
  return typeof ms === "string" ? JSON.stringify(ms) : String(ms);
}
