import { isRecord, MessageError } from "../error.js";
import type { ActorRef, AskOptions } from "../protocol.js";
import { asCodeError, parseCodeError } from "./error.js";

export { CodeError, type CodeReason, type Thrown } from "./error.js";

/** What code is written in; the types of `ts` are taken away and not checked. */
export type Language = "js" | "ts";

/** A line that a run wrote to its console. */
export interface Line {
  readonly level: "debug" | "log" | "info" | "warn" | "error";
  readonly text: string;
}

/** What a run came to; the value is `null` where JSON cannot say it. */
export interface Executed {
  readonly value: unknown;
  readonly output: readonly Line[];
  /** Whether the realm was new. */
  readonly fresh: boolean;
}

/** Limits of one run; what is more than the node grants is what the node grants. */
export interface CodeLimits {
  readonly time_ms?: number;
  readonly deadline_ms?: number;
  readonly memory?: number;
  readonly stack?: number;
  readonly jobs?: number;
  readonly output?: number;
  readonly result?: number;
}

/** A message of an actor of the node, as a function; its argument is the payload. */
export interface ActorFunction {
  readonly to: string;
  readonly type: string;
  /** Whether the code waits for the answer; else it gets a promise. */
  readonly waits?: boolean;
}

/** A function of this process; what it is called with comes from the code, and is to be checked. */
export type OwnFunction = (...values: unknown[]) => unknown;

/** What code may be given: a function of this process, or a message of an actor of the node. */
export type CodeFunction =
  | OwnFunction
  | { readonly call: OwnFunction; readonly waits?: boolean }
  | ActorFunction;

/** How code is run. */
export interface ExecuteOptions {
  /** `js` if not given. */
  readonly language?: Language;
  /** What the code finds in the global `args`. */
  readonly args?: unknown;
  /** What the code finds in `fns`. */
  readonly functions?: Readonly<Record<string, CodeFunction>>;
  /** A realm that is kept: what the code leaves in its globals, the next run of this name finds. */
  readonly realm?: string;
  readonly limits?: CodeLimits;
  /** Ends the run, wherever it is: an endless loop as well. */
  readonly signal?: AbortSignal;
  /** Is called with each line when it is written. */
  readonly onOutput?: (line: Line) => void;
}

/** What a node's actor for code has run, and what it keeps. */
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

/** The messages of an actor that runs code. */
export type CodeProtocol = {
  execute: { payload: Wanted; reply: Executed };
  follow: { payload: Wanted; item: unknown };
  answer: { payload: Answered; reply: boolean };
  forget: { payload: { readonly realm: string }; reply: boolean };
  usage: { reply: CodeUsage };
};

/** Where the actor is: a connection to a node. */
export interface CodePlace {
  actor(at: string): ActorRef<CodeProtocol>;
}

/** Code in the sandbox of a node. */
export interface Code {
  /** The actor itself. */
  readonly actor: ActorRef<CodeProtocol>;
  /**
   * Runs code: its value is that of its last expression, awaited if it is a promise. It has nothing
   * but what it is given.
   *
   * Rejects with a {@link CodeError} that has the reason, and with a MessageError if the node
   * cannot be reached.
   */
  execute(source: string, options?: ExecuteOptions): Promise<Executed>;
  /** Ends a kept realm; whether there was one. */
  forget(realm: string, options?: AskOptions): Promise<boolean>;
  usage(options?: AskOptions): Promise<CodeUsage>;
}

/**
 * The sandbox of a node, at `@(tools/code)`.
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
  try {
    // A loop that is left, because of a throw as well, ends the run.
    const how = signal === undefined ? {} : { signal };
    for await (const told of actor.stream("follow", wanted, how)) {
      if (!isRecord(told)) throw unread();
      const { line, call, ended, error } = parts(told);
      if (line !== undefined) {
        output.push(line);
        onOutput?.(line);
      } else if (call !== undefined) {
        const done = answer(actor, own.get(call.name), call);
        // It says to the code what went wrong; more cannot be said to anybody.
        done.catch(() => {});
      } else if (error !== undefined) {
        throw parseCodeError(error);
      } else {
        return { ...ended, output };
      }
    }
  } catch (error) {
    throw asCodeError(error);
  }
  throw new MessageError("failed", "the run ended without a result");
}

type Called = { readonly call: string; readonly name: string; readonly values: unknown[] };

/** Which of the functions are those of actors, and which are ours. */
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

/** Calls a function of ours, and says to the code what came of it. */
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
    // Also a value that is no JSON, or longer than the node takes.
    const why = error instanceof Error ? error.message : String(error);
    await actor.ask("answer", { call, error: why });
  }
}

type Parts = {
  readonly line?: Line;
  readonly call?: Called;
  readonly ended: { readonly value: unknown; readonly fresh: boolean };
  readonly error?: unknown;
};

/** Reads what a run tells: one of the parts is there. */
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
  return new MessageError("protocol", "a run tells lines, calls, and what it came to");
}
