/** The kind of an error; see the table in `docs/messages.md`. */
export type ErrorCode = (typeof CODES)[number];

/** An error as plain data. */
export interface ErrorData {
  readonly code: ErrorCode;
  /** A description for people. */
  readonly message: string;
  /** `true` if the same message may succeed later. */
  readonly retryable: boolean;
  /** Details, whose type depends on the code. */
  readonly details?: unknown;
}

const CODES = [
  "unknown-target",
  "bad-request",
  "full",
  "deadline",
  "cancelled",
  "refused",
  "forbidden",
  "failed",
  "protocol",
  "idle",
  "unreachable",
  "lost",
] as const;

const RETRYABLE: ReadonlySet<string> = new Set([
  "full",
  "deadline",
  "idle",
  "unreachable",
  "lost",
]);

/** Optional fields of a {@link MessageError}. */
export interface ErrorOptions {
  readonly retryable?: boolean;
  readonly details?: unknown;
  readonly cause?: unknown;
}

/**
 * The error of a message that was not handled or has no answer.
 *
 * A handler that throws a MessageError answers with it, and the actor continues. Any other
 * exception is a failure of the actor, which is restarted.
 *
 * @example
 * throw new MessageError("refused", "the account is closed");
 */
export class MessageError extends Error {
  override readonly name = "MessageError";
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly details: unknown;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? RETRYABLE.has(code);
    this.details = options.details;
  }

  /** Returns the error as plain data, to be sent or logged. */
  toJSON(): ErrorData {
    const { code, message, retryable, details } = this;
    return details === undefined
      ? { code, message, retryable }
      : { code, message, retryable, details };
  }
}

/**
 * Parses an error that arrived as data. An unknown code becomes `failed`.
 *
 * @example
 * parseError({ code: "full", message: "the mailbox is full", retryable: true }).code; // "full"
 *
 * @throws MessageError `bad-request` if the data is not an error.
 */
export function parseError(data: unknown): MessageError {
  if (!isRecord(data)) throw badRequest("an error is an object");
  const { code, message, retryable, details } = data;
  if (typeof code !== "string" || code === "") throw badRequest("an error has a code");
  if (typeof message !== "string") throw badRequest("the message of an error is text");
  if (typeof retryable !== "boolean") throw badRequest("retryable is true or false");
  const known = CODES.find((each) => each === code) ?? "failed";
  return new MessageError(known, message, { retryable, details });
}

/** Returns a MessageError as it is, and wraps any other value in one with the code `failed`. */
export function asMessageError(thrown: unknown): MessageError {
  return isMessageError(thrown) ? thrown : failed("the handler failed", thrown);
}

/** Returns `true` for a MessageError. Never throws: the prototype of a proxy may be unreadable. */
export function isMessageError(thrown: unknown): thrown is MessageError {
  try {
    return thrown instanceof MessageError;
  } catch {
    return false;
  }
}

/** Returns the text of a thrown value. Never throws: a value may have no text, or a hostile one. */
export function reasonOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "an error without a text";
  }
}

/** Returns the text of a thrown value in a single line. */
export function oneLine(thrown: unknown): string {
  return reasonOf(thrown).replace(/\s+/g, " ").slice(0, 500);
}

/**
 * Reports a bug of this package, as an uncaught error. What functions of the user throw does not
 * come here: it must not end the process.
 */
export function throwLater(thrown: unknown): void {
  queueMicrotask(() => {
    throw thrown;
  });
}

/**
 * Creates an error without a stack trace. Refusing a message has to cost less than handling it, or
 * an overloaded system would do nothing but refuse.
 */
export function stackless(make: () => MessageError): MessageError {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

export function failed(what: string, cause: unknown): MessageError {
  return new MessageError("failed", `${what}: ${reasonOf(cause)}`, { cause });
}

export function badRequest(message: string): MessageError {
  return new MessageError("bad-request", message);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
