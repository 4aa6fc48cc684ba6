import { type ActorFunction, type CodeLimits, type Language } from "../code/index.js";
import { asCodeError } from "../code/error.js";
import type { ActorRef, AskOptions, Protocol } from "../protocol.js";

/** The state of a program. A `passive` program keeps only its state until the next call. */
export interface ProgramInfo {
  readonly name: string;
  readonly state: "draft" | "resident" | "passive" | "stopped";
  readonly calls: number;
  readonly failed: number;
  readonly restarts: number;
}

/** Options of publishing a program. */
export interface PublishOptions extends AskOptions {
  readonly language?: Language;
  /** The JSON schema of its input. */
  readonly input?: object;
  /** The JSON schema of its output. */
  readonly output?: object;
  /** `true` to keep the program without running it. */
  readonly draft?: boolean;
  /**
   * Messages of actors to provide in `fns`. Functions of this process are not possible, because the
   * program outlives it.
   */
  readonly functions?: Readonly<Record<string, ActorFunction>>;
  /** Limits of each call, each capped by the limit of the node. */
  readonly limits?: CodeLimits;
}

type Published = {
  readonly name: string;
  readonly code: string;
  readonly language?: Language;
  readonly input?: object;
  readonly output?: object;
  readonly draft?: boolean;
  readonly fns?: Readonly<Record<string, ActorFunction>>;
  readonly limits?: CodeLimits;
};

/** The messages of the actor that publishes programs. */
export type ProgramsProtocol = {
  publish: { payload: Published };
  withdraw: { payload: { readonly name: string }; reply: boolean };
  list: { reply: readonly ProgramInfo[] };
};

/** The messages of a program. */
export type ProgramProtocol = { perform: { payload: unknown; reply: unknown } };

/** A connection to the node that has the programs. */
export interface ProgramsPlace {
  actor<P extends Protocol<P>>(at: string): ActorRef<P>;
}

/** The programs of a node: code that is published under a name, and kept. */
export interface Programs {
  /** The actor that publishes programs. */
  readonly actor: ActorRef<ProgramsProtocol>;
  /**
   * Publishes code that defines `handle(input)`, which may be async. The global `state` persists
   * between calls. Replaces a program of the same name.
   */
  publish(name: string, source: string, options?: PublishOptions): Promise<void>;
  /**
   * Calls a program and resolves with the result of `handle`. A `signal` ends the call at any
   * point.
   *
   * Rejects with a CodeError of `strowger/code` if the code fails, and with a MessageError
   * `refused`, `bad-request` or `failed` that names the schema if the input or output does not
   * match it.
   */
  call(name: string, input?: unknown, options?: AskOptions): Promise<unknown>;
  /** Ends a program. Resolves with `true` if there was one. */
  remove(name: string, options?: AskOptions): Promise<boolean>;
  list(options?: AskOptions): Promise<readonly ProgramInfo[]>;
}

/**
 * Default deadline of a call in milliseconds: longer than a node lets a program compute and wait.
 */
const PATIENCE = 60_000;

/**
 * Returns the programs of a node, at `@(tools/programs)`; each is an actor at `@(programs/NAME)`.
 *
 * @example
 * await programs(node).publish("double", "function handle(n) { return 2 * n }");
 * await programs(node).call("double", 21); // 42
 */
export function programs(place: ProgramsPlace): Programs {
  const actor = place.actor<ProgramsProtocol>("tools/programs");
  return {
    actor,
    publish: (name, source, options = {}) => {
      const { functions, deadlineMs = PATIENCE, signal, ...rest } = options;
      const published = { name, code: source, fns: functions ?? {}, ...rest };
      const how = { deadlineMs, ...(signal === undefined ? {} : { signal }) };
      return told(actor.ask("publish", published, how));
    },
    call: (name, input = null, options = {}) => {
      const program = place.actor<ProgramProtocol>(`programs/${name}`);
      return told(program.ask("perform", input, { deadlineMs: PATIENCE, ...options }));
    },
    remove: (name, options) => actor.ask("withdraw", { name }, options),
    list: (options) => actor.ask("list", undefined, options),
  };
}

async function told<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw asCodeError(error);
  }
}
