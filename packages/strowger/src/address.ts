import { badRequest } from "./error.js";

/** The place of an actor in the tree, as text: `@(tools/files)`. */
export type Address = `@(${string})`;

/** An address taken apart. */
export interface ParsedAddress {
  readonly address: Address;
  /** The path without marks: `tools/files`. */
  readonly path: string;
  /** The keys from the root down. */
  readonly keys: readonly string[];
}

/** Octets of a path. */
const LONGEST = 1024;
const DEEPEST = 32;
const KEY = "(?!\\.{1,2}(?:/|$))[A-Za-z0-9._~:+=,\\-@]{1,255}";
const PATH = new RegExp(`^${KEY}(?:/${KEY}){0,${DEEPEST - 1}}$(?!\\n)`);

/** Addresses that were checked before; emptied when full, so that it stays small. */
const known = new Map<string, Address>();
const parsed = new Map<string, ParsedAddress>();
const KNOWN = 4096;

/**
 * Makes the address of a path.
 *
 * @example
 * address("tools/files"); // "@(tools/files)"
 *
 * @throws MessageError `bad-request` if it is no path.
 */
export function address(path: string): Address {
  const found = known.get(path);
  if (found !== undefined) return found;
  if (path.length > LONGEST || !PATH.test(path)) {
    throw badRequest(`${shown(path)} is no path: it is up to ${DEEPEST} keys with slashes between`
      + " them, a key is of letters, digits and . _ ~ : + = , - @, as in tools/files");
  }
  const made: Address = `@(${path})`;
  if (known.size >= KNOWN) known.clear();
  known.set(path, made);
  return made;
}

/**
 * Takes an address apart.
 *
 * @example
 * parseAddress("@(tools/files)").keys; // ["tools", "files"]
 *
 * @throws MessageError `bad-request` if it is no address.
 */
export function parseAddress(text: string): ParsedAddress {
  const found = parsed.get(text);
  if (found !== undefined) return found;
  const path = pathOf(text);
  const made = Object.freeze({
    address: address(path),
    path,
    keys: Object.freeze(path.split("/")),
  });
  if (parsed.size >= KNOWN) parsed.clear();
  parsed.set(text, made);
  return made;
}

/** The path in an address; it is checked. */
export function pathOf(text: string): string {
  if (!text.startsWith("@(") || !text.endsWith(")")) {
    throw badRequest(`${shown(text)} is no address: it is a path between @( and ), as in`
      + " @(tools/files)");
  }
  const path = text.slice(2, -1);
  address(path);
  return path;
}

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}
