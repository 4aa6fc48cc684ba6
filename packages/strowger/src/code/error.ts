import { isRecord, MessageError, parseError } from "../error.js";

/**
 * The reason why a run failed: the code threw (`thrown`) or exceeded the limit of that name; its
 * value cannot be returned; it waits for a promise that nothing can settle; or the node rejected
 * the run, cancelled it or failed.
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

/** An exception thrown by the code. Line and column count from 1 and refer to the code that ran. */
export interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly line?: number;
  readonly column?: number;
}

/**
 * The error of a failed run.
 *
 * @example
 * if (error instanceof CodeError && error.reason === "thrown") console.log(error.thrown?.line);
 */
export class CodeError extends MessageError {
  readonly reason: CodeReason;
  /** The exception that the code threw, if it did. */
  readonly thrown: Thrown | undefined;

  constructor(from: MessageError, reason: CodeReason, thrown: Thrown | undefined) {
    const { code, message, retryable, details } = from;
    super(code, message, { retryable, details, cause: from.cause });
    this.reason = reason;
    this.thrown = thrown;
  }
}

/** Converts an error to a CodeError if it is the error of a run; returns it unchanged otherwise. */
export function asCodeError(error: unknown): unknown {
  if (!(error instanceof MessageError) || !isRecord(error.details)) return error;
  const { details } = error;
  const reason = REASONS.find((each) => each === details["reason"]);
  return reason === undefined ? error : new CodeError(error, reason, thrown(reason, details));
}

/** Parses an error that arrived as data. */
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
