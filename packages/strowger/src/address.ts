import { badRequest } from "./error.js";

/** The address of an actor in the tree, as text: `@(tools/files)`. */
export type Address = `@(${string})`;

/** The parts of an address. */
export interface ParsedAddress {
  readonly address: Address;
  /** The path without the delimiters: `tools/files`. */
  readonly path: string;
  /** The keys, from the root down. */
  readonly keys: readonly string[];
}

/** Maximum length of a path in bytes. */
const LONGEST = 1024;
const DEEPEST = 32;
const KEY = "(?!\\.{1,2}(?:/|$))[A-Za-z0-9._~:+=,\\-@]{1,255}";
const PATH = new RegExp(`^${KEY}(?:/${KEY}){0,${DEEPEST - 1}}$(?!\\n)`);

/** Addresses that are known to be valid; cleared when full, which bounds its size. */
const known = new Map<string, Address>();
const parsed = new Map<string, ParsedAddress>();
const KNOWN = 4096;

/**
 * Creates the address of a path.
 *
 * @example
 * address("tools/files"); // "@(tools/files)"
 *
 * @throws MessageError `bad-request` if the path is invalid.
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
 * Parses an address.
 *
 * @example
 * parseAddress("@(tools/files)").keys; // ["tools", "files"]
 *
 * @throws MessageError `bad-request` if the text is not an address.
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

/** Returns the path of an address, after checking it. */
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
