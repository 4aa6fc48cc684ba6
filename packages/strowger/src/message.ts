import { type Address, parseAddress } from "./address.js";
import {
  badRequest,
  type ErrorData,
  isRecord,
  MessageError,
  parseError,
} from "./error.js";

/** The kind of reply that the sender expects. */
export type Pattern = "tell" | "ask" | "stream";

/** A message in its envelope; `docs/messages.md` describes the fields. */
export interface Message<T = unknown> {
  readonly id: string;
  readonly pattern: Pattern;
  readonly to: Address;
  readonly from?: Address | undefined;
  readonly type: string;
  readonly payload?: T | undefined;
  readonly correlationId?: string | undefined;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  /** Milliseconds that the sender waits for an answer. */
  readonly deadlineMs?: number | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly error?: ErrorData | undefined;
}

/**
 * The fields that {@link createMessage} takes. It generates `id` and `timestamp` and, for asks and
 * streams, a missing `correlationId`.
 */
export interface MessageInit<T> {
  readonly pattern: Pattern;
  readonly to: Address;
  readonly type: string;
  readonly payload?: T;
  readonly from?: Address;
  readonly correlationId?: string;
  readonly deadlineMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Returns 64 random bits as text, which distinguish this process from others. */
function seed(): string {
  const words = crypto.getRandomValues(new Uint32Array(2));
  return Array.from(words, (word) => word.toString(36).padStart(7, "0")).join("");
}

const prefix = `${seed()}-`;
let messages = 0;
let correlations = 0;

/**
 * Generates a unique message id.
 *
 * @example
 * generateMessageId(); // "0k3v9wq1x8c2zf-1"
 */
export function generateMessageId(): string {
  messages += 1;
  return prefix + messages;
}

/**
 * Generates a unique correlation id.
 *
 * @example
 * generateCorrelationId(); // "0k3v9wq1x8c2zf-c1"
 */
export function generateCorrelationId(): string {
  correlations += 1;
  return `${prefix}c${correlations}`;
}

/**
 * Number of envelopes that share one reading of the clock, which costs as much as the rest of an
 * envelope.
 */
const SHARED = 64;
let now = 0;
let left = 0;
let isReset = true;

/**
 * Returns milliseconds since 1970, read once for up to `SHARED` envelopes of one synchronous run.
 */
function timestamp(): number {
  if (left > 0) {
    left -= 1;
    return now;
  }
  now = Date.now();
  left = SHARED - 1;
  if (isReset) {
    isReset = false;
    queueMicrotask(reset);
  }
  return now;
}

function reset(): void {
  left = 0;
  isReset = true;
}

/**
 * Creates an envelope for a payload.
 *
 * @example
 * createMessage({ pattern: "tell", to: address("counter"), type: "add", payload: 1 });
 */
export function createMessage<T>(init: MessageInit<T>): Message<T> {
  const { pattern } = init;
  return {
    id: generateMessageId(),
    pattern,
    to: init.to,
    from: init.from,
    type: init.type,
    payload: init.payload,
    correlationId: init.correlationId ?? (pattern === "tell" ? undefined : generateCorrelationId()),
    timestamp: timestamp(),
    deadlineMs: init.deadlineMs,
    metadata: init.metadata,
    error: undefined,
  };
}

/**
 * Creates an answer to a message, addressed to its sender, with its type and correlation id.
 *
 * @example
 * createResponse(question, 42).correlationId === question.correlationId; // true
 *
 * @throws MessageError `bad-request` if the message has no sender.
 */
export function createResponse<T>(to: Message, payload: T): Message<T> {
  return { ...answer(to), payload, error: undefined };
}

/**
 * Creates an answer with an error to a message.
 *
 * @example
 * createErrorResponse(question, new MessageError("refused", "not today")).error?.code; // "refused"
 *
 * @throws MessageError `bad-request` if the message has no sender.
 */
export function createErrorResponse(to: Message, error: MessageError): Message<never> {
  return { ...answer(to), payload: undefined, error: error.toJSON() };
}

function answer(to: Message): Message<never> {
  if (to.from === undefined) throw badRequest(`message ${to.id} has no sender to answer to`);
  return {
    id: generateMessageId(),
    pattern: "tell",
    to: to.from,
    from: to.to,
    type: to.type,
    payload: undefined,
    correlationId: to.correlationId ?? to.id,
    timestamp: timestamp(),
    deadlineMs: undefined,
    metadata: undefined,
    error: undefined,
  };
}

const ID = /^[A-Za-z0-9_-]{1,64}$(?!\n)/;
const WORD = /^[^\s\p{Cc}]+$/u;
const LONGEST_TYPE = 128;
const ENTRIES = 64;
const utf8 = new TextEncoder();

/**
 * Parses a message from an untrusted source.
 *
 * @example
 * parseMessage(JSON.parse(text));
 *
 * @throws MessageError `bad-request`, which names the invalid field.
 */
export function parseMessage(data: unknown): Message {
  if (!isRecord(data)) throw badRequest("a message must be a JSON object");
  const pattern = PATTERNS.find((each) => each === data["pattern"]);
  if (pattern === undefined) throw wrong("pattern", "tell, ask or stream");
  const correlationId = optional(data, "correlationId", id);
  if (pattern !== "tell" && correlationId === undefined) {
    throw badRequest(`a message of pattern ${pattern} has a correlationId`);
  }
  const error = optional(data, "error", (value) => parseError(value).toJSON());
  if (error !== undefined && "payload" in data) {
    throw badRequest("a message has payload or error, not both");
  }
  return {
    id: id(data["id"], "id"),
    pattern,
    to: place(data["to"], "to"),
    from: optional(data, "from", place),
    type: parseType(data["type"]),
    payload: data["payload"],
    correlationId,
    timestamp: integer(0, Number.MAX_SAFE_INTEGER)(data["timestamp"], "timestamp"),
    deadlineMs: optional(data, "deadlineMs", integer(1, 0xffff_ffff)),
    metadata: optional(data, "metadata", labels),
    error,
  };
}

const PATTERNS = ["tell", "ask", "stream"] as const;

function optional<T>(
  data: Readonly<Record<string, unknown>>,
  field: string,
  parse: (value: unknown, field: string) => T,
): T | undefined {
  return field in data ? parse(data[field], field) : undefined;
}

function id(value: unknown, field: string): string {
  if (typeof value === "string" && ID.test(value)) return value;
  throw wrong(field, "1 to 64 of A-Z a-z 0-9 _ -");
}

function place(value: unknown, field: string): Address {
  if (typeof value === "string") return parseAddress(value).address;
  throw wrong(field, "an address");
}

/** Checks the type of a message. */
export function parseType(value: unknown): string {
  const fits = typeof value === "string" && WORD.test(value);
  if (fits && utf8.encode(value).length <= LONGEST_TYPE) return value;
  throw wrong("type", `text of 1 to ${LONGEST_TYPE} bytes without whitespace`);
}

function integer(least: number, most: number) {
  return (value: unknown, field: string): number => {
    if (typeof value === "number" && Number.isSafeInteger(value)) {
      if (value >= least && value <= most) return value;
    }
    throw wrong(field, `an integer from ${least} to ${most}`);
  };
}

function labels(value: unknown, field: string): Readonly<Record<string, string>> {
  if (!isRecord(value)) throw wrong(field, "an object of text");
  const entries = Object.entries(value);
  if (entries.length > ENTRIES) throw wrong(field, `of at most ${ENTRIES} entries`);
  const read: [string, string][] = [];
  for (const [key, each] of entries) {
    if (typeof each !== "string") throw wrong(`${field}.${key}`, "text");
    read.push([key, each]);
  }
  return Object.fromEntries(read);
}

function wrong(field: string, is: string): MessageError {
  return badRequest(`the ${field} of a message is ${is}`);
}
