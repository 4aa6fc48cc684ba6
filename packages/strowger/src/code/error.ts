import { isRecord, MessageError, parseError } from "../error.js";

/**
 * Why a run came to nothing: it threw; it passed the limit of that name; its value cannot be given;
 * it waits for a promise that nothing will settle; or the node did not take it, or failed.
 */
export type CodeReason = (typeof REASONS)[number];

const REASONS = [
  "thrown",
  "time",
  "deadline",
  "memory",
  "stack",
  "jobs",
  "output",
  "result",
  "source",
  "value",
  "unsettled",
  "cancelled",
  "language",
  "function",
  "full",
  "sandbox",
] as const;

/** What code threw; line and column count from 1, in the code that ran. */
export interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly line?: number;
  readonly column?: number;
}

/**
 * Why a run came to nothing.
 *
 * @example
 * if (error instanceof CodeError && error.reason === "thrown") console.log(error.thrown?.line);
 */
export class CodeError extends MessageError {
  readonly reason: CodeReason;
  /** What the code threw, if it did. */
  readonly thrown: Thrown | undefined;

  constructor(from: MessageError, reason: CodeReason, thrown: Thrown | undefined) {
    const { code, message, retryable, details } = from;
    super(code, message, { retryable, details, cause: from.cause });
    this.reason = reason;
    this.thrown = thrown;
  }
}

/** An error as it came, made one of code if it is. */
export function asCodeError(error: unknown): unknown {
  if (!(error instanceof MessageError) || !isRecord(error.details)) return error;
  const { details } = error;
  const reason = REASONS.find((each) => each === details["reason"]);
  return reason === undefined ? error : new CodeError(error, reason, thrown(reason, details));
}

/** Reads an error that came as data. */
export function parseCodeError(data: unknown): unknown {
  return asCodeError(parseError(data));
}

function thrown(
  reason: CodeReason,
  details: Readonly<Record<string, unknown>>,
): Thrown | undefined {
  if (reason !== "thrown") return undefined;
  const text = (key: string): string => {
    const value = details[key];
    return typeof value === "string" ? value : "";
  };
  const line = details["line"];
  const column = details["column"];
  const place = typeof line === "number" && typeof column === "number" ? { line, column } : {};
  return { name: text("name"), message: text("message"), stack: text("stack"), ...place };
}
