import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { findBinary } from "../src/adapter/binary.js";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/** How a node is started for a test, on a machine that may have much else to do. */
export const patient = {
  readyMs: 60_000,
  shutdownMs: 60_000,
  connect: { helloMs: 60_000, deadlineMs: 50_000 },
  log: () => {},
} as const;

/** Where nodes of tests keep the engine that runs code, so that it is compiled once. */
export function engine(): string {
  const folder = fileURLToPath(new URL("../engine", import.meta.url));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** The node to test with: STROWGER_BIN, what cargo built here, or what is installed. */
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
 * The node, or why tests that need one are skipped; where nothing may be skipped it has to be
 * there.
 */
export function nodeOrSkip(): { readonly program: string; readonly skip: false | string } {
  const program = binary();
  if (program !== undefined) return { program, skip: false };
  const why = "no node: set STROWGER_BIN, or build it with `cargo build`";
  if (process.env["CI"] === "true") throw new Error(`CI=true and ${why}`);
  return { program: "", skip: why };
}
