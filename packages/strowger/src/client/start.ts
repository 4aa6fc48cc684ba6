import type { ConnectOptions } from "./connection.js";
import type { RemoteNode } from "./node.js";

/** How a node is started; each has a default. */
export interface StartOptions {
  /** The program. Otherwise `STROWGER_BIN`, then `strowger` on the PATH. */
  readonly binary?: string;
  /** Arguments of `strowger run`, such as `["--config", "node.toml"]`; `["--port", "0"]`. */
  readonly args?: readonly string[];
  /** Where others can connect to it: in a folder of its own, which goes with it, if not given. */
  readonly socket?: string;
  /** Variables of its environment; those of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds until it has to be ready: 10 000. */
  readonly readyMs?: number;
  /** Milliseconds that it may take to end before it is killed: 10 000. */
  readonly shutdownMs?: number;
  /** Gets each line of its log; they go to our own standard error if not given. */
  readonly log?: (line: string) => void;
  /** How to connect to it. */
  readonly connect?: ConnectOptions;
}

/** A node that was started here. */
export interface StartedNode extends RemoteNode {
  /** The program that it runs. */
  readonly binary: string;
  readonly pid: number;
  /** The socket of its gateway. */
  readonly socket: string;
  /** What it said when it was ready, such as the addresses of its other doors. */
  readonly announcement: Readonly<Record<string, unknown>>;
  /** Resolves when it has ended, with its exit code or the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** Ends it in order, or kills it when that takes too long. */
  stop(): Promise<number | string>;
}

/**
 * Starts a node as a child of this process and connects to it. It ends with this process. If it
 * ends before, calls fail, also later ones: `connect` and `socket` are for a node that comes back.
 *
 * @example
 * await using node = await startNode();
 * await node.actor<Counter>("tools/counter").ask("add", 2);
 *
 * @throws MessageError if there is no program, or it does not become ready.
 */
export async function startNode(options: StartOptions = {}): Promise<StartedNode> {
  const { start } = await import("#adapter");
  return start(options);
}
