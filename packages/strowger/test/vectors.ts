import { readFileSync } from "node:fs";

/** Reads a file of test vectors that the Rust tests share. */
export function vectors(name: string): unknown {
  const at = new URL(`../../../../fixtures/messages/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(at, "utf8"));
}

/** Returns the list at a key of an object, whose items have to be objects. */
export function list(from: unknown, key: string): Readonly<Record<string, unknown>>[] {
  const items = record(from)[key];
  if (!Array.isArray(items)) throw new Error(`no list ${key}`);
  return items.map(record);
}

export function record(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) throw new Error("no object");
  return Object.fromEntries(Object.entries(value));
}

export function text(value: unknown): string {
  if (typeof value !== "string") throw new Error("no text");
  return value;
}

export function number(value: unknown): number {
  if (typeof value !== "number") throw new Error("no number");
  return value;
}
