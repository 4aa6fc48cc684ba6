import { onAbort } from "../delivery.js";
import { isRecord, MessageError, reasonOf } from "../error.js";
import type { ActorRef, AskOptions } from "../protocol.js";
import { callSafely } from "../thenable.js";
import { writeError } from "../trouble.js";
import { asCodeError, parseCodeError } from "./error.js";

export { CodeError, type CodeReason, type Thrown } from "./error.js";

/** The language of the code. The types of `ts` are stripped, not checked. */
export type Language = "js" | "ts";

/** A line that a run wrote to its console. */
export interface Line {
  readonly level: "debug" | "log" | "info" | "warn" | "error";
  readonly text: string;
}

/** The result of a run. `value` is `null` if JSON cannot represent it. */
export interface Executed {
  readonly value: unknown;
  readonly output: readonly Line[];
  /** `true` if the realm was new. */
  readonly fresh: boolean;
}

/** Limits of one run, each capped by the limit of the node. */
export interface CodeLimits {
  readonly time_ms?: number;
  readonly deadline_ms?: number;
  readonly memory?: number;
  readonly stack?: number;
  readonly jobs?: number;
  readonly output?: number;
  readonly result?: number;
}

/**
 * A message of an actor in the node, made available as a function whose argument is the payload.
 */
export interface ActorFunction {
  readonly to: string;
  readonly type: string;
  /** `true` if the call blocks until the answer arrives; otherwise it returns a promise. */
  readonly waits?: boolean;
}

/** A function of this process. Its arguments come from the code and have to be validated. */
export type OwnFunction = (...values: unknown[]) => unknown;

/** A function to provide to code: one of this process, or a message of an actor in the node. */
export type CodeFunction =
  | OwnFunction
  | { readonly call: OwnFunction; readonly waits?: boolean }
  | ActorFunction;

/** Options of a run. */
export interface ExecuteOptions {
  /** Default: `js`. */
  readonly language?: Language;
  /** The value of the global `args`. */
  readonly args?: unknown;
  /** The functions in the global `fns`. */
  readonly functions?: Readonly<Record<string, CodeFunction>>;
  /**
   * The name of a realm to keep: the next run with this name finds the globals that this one
   * leaves.
   */
  readonly realm?: string;
  readonly limits?: CodeLimits;
  /** Ends the run at any point, even in an endless loop. */
  readonly signal?: AbortSignal;
  /**
   * Called with each line as soon as it is written. What it throws, or what its promise is rejected
   * with, ends the run, which rejects with it.
   */
  readonly onOutput?: (line: Line) => unknown;
}

/** Stats of a node's code actor. */
export interface CodeUsage {
  readonly runs: number;
  readonly failed: number;
  readonly limits: Readonly<Record<string, number>>;
  readonly cancelled: number;
  readonly running: number;
  readonly waiting: number;
  readonly realms: number;
  readonly memory: number;
}

type Wanted = {
  readonly code: string;
  readonly language?: Language;
  readonly args?: unknown;
  readonly realm?: string;
  readonly fns?: Readonly<Record<string, ActorFunction>>;
  readonly calls?: Readonly<Record<string, { readonly waits: boolean }>>;
  readonly limits?: CodeLimits;
};
type Answered = { readonly call: string; readonly value?: unknown; readonly error?: string };

/** The messages of a code actor. */
export type CodeProtocol = {
  execute: { payload: Wanted; reply: Executed };
  follow: { payload: Wanted; item: unknown };
  answer: { payload: Answered; reply: boolean };
  forget: { payload: { readonly realm: string }; reply: boolean };
  usage: { reply: CodeUsage };
};

/** A connection to the node that has the code actor. */
export interface CodePlace {
  actor(at: string): ActorRef<CodeProtocol>;
}

/** Runs code in the sandbox of a node. */
export interface Code {
  /** The code actor itself. */
  readonly actor: ActorRef<CodeProtocol>;
  /**
   * Runs code. Its value is the value of the last expression, awaited if it is a promise. The code
   * has access only to what its options provide.
   *
   * Rejects with a {@link CodeError} if the run fails, and with a MessageError if the node cannot
   * be reached.
   */
  execute(source: string, options?: ExecuteOptions): Promise<Executed>;
  /** Ends a kept realm. Resolves with `true` if there was one. */
  forget(realm: string, options?: AskOptions): Promise<boolean>;
  usage(options?: AskOptions): Promise<CodeUsage>;
}

/**
 * Returns the sandbox of a node, at `@(tools/code)`.
 *
 * @example
 * const { value } = await code(node).execute("args.a + args.b", { args: { a: 1, b: 2 } });
 */
export function code(place: CodePlace): Code {
  const actor = place.actor("tools/code");
  return {
    actor,
    execute: (source, options = {}) => execute(actor, source, options),
    forget: (realm, options) => actor.ask("forget", { realm }, options),
    usage: (options) => actor.ask("usage", undefined, options),
  };
}

async function execute(
  actor: ActorRef<CodeProtocol>,
  source: string,
  { language, args, functions = {}, realm, limits, signal, onOutput }: ExecuteOptions,
): Promise<Executed> {
  const { fns, calls, own } = sorted(functions);
  const wanted: Wanted = {
    code: source,
    fns,
    calls,
    ...(language === undefined ? {} : { language }),
    ...(args === undefined ? {} : { args }),
    ...(realm === undefined ? {} : { realm }),
    ...(limits === undefined ? {} : { limits }),
  };
  const output: Line[] = [];
  const abort = new AbortController();
  const forget = signal && onAbort(signal, (reason) => abort.abort(reason));
  let broken: { readonly error: unknown } | undefined;
  let isOver = false;
  const caught = (error: unknown): void => {
    if (isOver) writeError("onOutput failed after its run had ended", error);
    broken ??= { error };
    abort.abort();
  };
  try {
    // Leaving this loop ends the run.
    for await (const told of actor.stream("follow", wanted, { signal: abort.signal })) {
      if (broken !== undefined) break;
      if (!isRecord(told)) throw unread();
      const { line, call, ended, error } = parts(told);
      if (line !== undefined) {
        output.push(line);
        if (onOutput !== undefined) callSafely(caught, onOutput, line);
      } else if (call !== undefined) {
        const done = answer(actor, own.get(call.name), call);
        // `answer` reports failures to the code itself; there is nobody else to tell.
        done.catch(() => {});
      } else if (error !== undefined) {
        throw parseCodeError(error);
      } else {
        return { ...ended, output };
      }
    }
  } catch (error) {
    throw broken === undefined ? asCodeError(error) : broken.error;
  } finally {
    isOver = true;
    forget?.();
  }
  if (broken !== undefined) throw broken.error;
  throw new MessageError("failed", "the run ended without a result");
}

type Called = { readonly call: string; readonly name: string; readonly values: unknown[] };

/** Separates messages of actors from functions of this process. */
function sorted(functions: Readonly<Record<string, CodeFunction>>): {
  readonly fns: Record<string, ActorFunction>;
  readonly calls: Record<string, { readonly waits: boolean }>;
  readonly own: ReadonlyMap<string, OwnFunction>;
} {
  const fns: [string, ActorFunction][] = [];
  const calls: [string, { readonly waits: boolean }][] = [];
  const own = new Map<string, OwnFunction>();
  for (const [name, given] of Object.entries(functions)) {
    if (typeof given === "function") {
      calls.push([name, { waits: false }]);
      own.set(name, given);
    } else if ("call" in given) {
      calls.push([name, { waits: given.waits ?? false }]);
      own.set(name, given.call);
    } else {
      fns.push([name, given]);
    }
  }
  return { fns: Object.fromEntries(fns), calls: Object.fromEntries(calls), own };
}

/** Calls a function of this process, and sends its result or error to the code. */
async function answer(
  actor: ActorRef<CodeProtocol>,
  run: OwnFunction | undefined,
  { call, name, values }: Called,
): Promise<void> {
  try {
    if (run === undefined) throw new MessageError("unknown-target", `there is no ${name}`);
    const value = (await run(...values)) ?? null;
    await actor.ask("answer", { call, value });
  } catch (error) {
    // Includes values that JSON cannot represent, or that are too long for the node.
    await actor.ask("answer", { call, error: reasonOf(error) });
  }
}

type Parts = {
  readonly line?: Line;
  readonly call?: Called;
  readonly ended: { readonly value: unknown; readonly fresh: boolean };
  readonly error?: unknown;
};

/** Parses an item of a run, which has exactly one of these parts. */
function parts(told: Readonly<Record<string, unknown>>): Parts {
  const ended = { value: null, fresh: false };
  const { line, call, ended: done, error } = told;
  if (isRecord(line)) return { line: readLine(line), ended };
  if (isRecord(call)) return { call: readCall(call), ended };
  if (error !== undefined) return { error, ended };
  if (!isRecord(done)) throw unread();
  return { ended: { value: done["value"] ?? null, fresh: done["fresh"] === true } };
}

const LEVELS = ["debug", "log", "info", "warn", "error"] as const;

function readLine(line: Readonly<Record<string, unknown>>): Line {
  const level = LEVELS.find((each) => each === line["level"]);
  const text = line["text"];
  if (level === undefined || typeof text !== "string") throw unread();
  return { level, text };
}

function readCall(called: Readonly<Record<string, unknown>>): Called {
  const call = called["call"];
  const name = called["name"];
  const values = called["arguments"];
  if (typeof call !== "string" || typeof name !== "string") throw unread();
  if (!Array.isArray(values)) throw unread();
  return { call, name, values };
}

function unread(): MessageError {
  return new MessageError("protocol", "unexpected item from a run: no line, call or result");
}
