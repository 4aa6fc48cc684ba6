import { type ActorFunction, type CodeLimits, type Language } from "../code/index.js";
import { asCodeError } from "../code/error.js";
import type { ActorRef, AskOptions, Protocol } from "../protocol.js";

/** A program at one moment; a `passive` one has its state and nothing else until the next call. */
export interface ProgramInfo {
  readonly name: string;
  readonly state: "draft" | "resident" | "passive" | "stopped";
  readonly calls: number;
  readonly failed: number;
  readonly restarts: number;
}

/** How a program is published. */
export interface PublishOptions extends AskOptions {
  readonly language?: Language;
  /** The JSON schema of what it takes. */
  readonly input?: object;
  /** The JSON schema of what it gives. */
  readonly output?: object;
  /** Whether it is kept and not run. */
  readonly draft?: boolean;
  /** Messages of actors that it finds in `fns`: it outlives this process, so no others. */
  readonly functions?: Readonly<Record<string, ActorFunction>>;
  /** Limits of each call; what is more than the node grants is what the node grants. */
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

/** The messages of the desk at which programs are published. */
export type ProgramsProtocol = {
  publish: { payload: Published };
  withdraw: { payload: { readonly name: string }; reply: boolean };
  list: { reply: readonly ProgramInfo[] };
};

/** The messages of a program. */
export type ProgramProtocol = { perform: { payload: unknown; reply: unknown } };

/** Where programs are: a connection to a node. */
export interface ProgramsPlace {
  actor<P extends Protocol<P>>(at: string): ActorRef<P>;
}

/** Programs of a node: code that is published under a name, and kept. */
export interface Programs {
  /** The desk itself. */
  readonly actor: ActorRef<ProgramsProtocol>;
  /**
   * Publishes code that defines `handle(input)`, which may be async; what it keeps in its global
   * `state` stays. A program of the same name makes way.
   */
  publish(name: string, source: string, options?: PublishOptions): Promise<void>;
  /**
   * Calls a program: what `handle` gives. A `signal` ends it, wherever it is.
   *
   * Rejects with a CodeError of `strowger/code` if its code fails, with a MessageError `refused`,
   * `bad-request` or `failed` that names the schema if something does not fit it.
   */
  call(name: string, input?: unknown, options?: AskOptions): Promise<unknown>;
  /** Ends a program; whether there was one. */
  remove(name: string, options?: AskOptions): Promise<boolean>;
  list(options?: AskOptions): Promise<readonly ProgramInfo[]>;
}

/** How long a program may take: longer than a node lets one compute and wait. */
const PATIENCE = 60_000;

/**
 * The programs of a node, at `@(tools/programs)`; each is an actor at `@(programs/NAME)`.
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
