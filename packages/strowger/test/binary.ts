import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { findBinary } from "../src/adapter/binary.js";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** Options to start a node for a test, on a machine that may be busy. */
export const patient = {
  readyMs: 60_000,
  shutdownMs: 60_000,
  connect: { helloMs: 60_000, deadlineMs: 50_000 },
  log: () => {},
} as const;

/** Returns the directory in which nodes of tests keep the compiled engine that runs code. */
export function engine(): string {
  const folder = fileURLToPath(new URL("../engine", import.meta.url));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Returns the node to test with: STROWGER_BIN, a local cargo build, or an installed one. */
export function binary(): string | undefined {
  const named = process.env["STROWGER_BIN"];
  if (named !== undefined && named !== "") return named;
  const built = ["debug", "release"].map((profile) => `${root}target/${profile}/strowger`);
  const found = built.find((file) => existsSync(file));
  if (found !== undefined) return found;
  try {
    return findBinary(process.env);
  } catch {
    return undefined;
  }
}

/**
 * Returns the node, or the reason why tests that need one are skipped. Throws if the node is
 * missing where nothing may be skipped.
 */
export function nodeOrSkip(): { readonly program: string; readonly skip: false | string } {
  const program = binary();
  if (program !== undefined) return { program, skip: false };
  const why = "no node: set STROWGER_BIN, or build it with `cargo build`";
  if (process.env["CI"] === "true") throw new Error(`CI=true and ${why}`);
  return { program: "", skip: why };
}
