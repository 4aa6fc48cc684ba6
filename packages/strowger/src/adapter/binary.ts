import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

import { MessageError } from "../error.js";

const PROGRAM = process.platform === "win32" ? "strowger.exe" : "strowger";

/**
 * Finds the executable of a node.
 *
 * @throws MessageError `refused` if there is none; the message names where it was looked for.
 */
export function findBinary(env: Readonly<Record<string, string | undefined>>): string {
  const named = env["STROWGER_BIN"];
  if (named !== undefined && named !== "") {
    if (isProgram(named)) return named;
    throw new MessageError("refused", `STROWGER_BIN is ${named}, which is not an executable file`);
  }
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const file = join(folder, PROGRAM);
    if (folder !== "" && isProgram(file)) return file;
  }
  throw new MessageError("refused", "no strowger binary: STROWGER_BIN is not set, and there is"
    + ` no ${PROGRAM} on the PATH`);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
