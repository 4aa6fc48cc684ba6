import type { ConnectOptions } from "./connection.js";
import type { RemoteNode } from "./node.js";

/** Options of a node to start. */
export interface StartOptions {
  /** The executable. Default: `STROWGER_BIN`, then `strowger` on the PATH. */
  readonly binary?: string;
  /**
   * Arguments of `strowger run`, such as `["--config", "node.toml"]` or `["--port", "0"]`. Default:
   * none.
   */
  readonly args?: readonly string[];
  /**
   * The path of the socket on which the node accepts other clients. Default: a socket in a
   * temporary directory, which is removed when the node exits.
   */
  readonly socket?: string;
  /** The environment variables of the node. Default: those of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Time limit in milliseconds for the node to become ready. Default: 10 000. */
  readonly readyMs?: number;
  /**
   * Time limit in milliseconds for an orderly shutdown, before the node is killed. Default: 10 000.
   */
  readonly shutdownMs?: number;
  /**
   * Receives each line of the log. Default: the standard error of this process. What it throws is
   * published to `troubles`.
   */
  readonly log?: (line: string) => unknown;
  /** Options of the connection. */
  readonly connect?: ConnectOptions;
}

/** A node that this process started. */
export interface StartedNode extends RemoteNode {
  /** The executable. */
  readonly binary: string;
  readonly pid: number;
  /** The path of the gateway socket. */
  readonly socket: string;
  /** The announcement of the node when it became ready, such as the addresses of its endpoints. */
  readonly announcement: Readonly<Record<string, unknown>>;
  /** Resolves when the node has exited, with its exit code or the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** Shuts the node down, and kills it if that takes too long. Resolves as `exited` does. */
  stop(): Promise<number | string>;
}

/**
 * Starts a node as a child of this process and connects to it. The node ends with this process. If
 * the node ends first, all calls fail, including later ones, unless `socket` is set: then the
 * client reconnects to a node that is started there again.
 *
 * @example
 * await using node = await startNode();
 * await node.actor<Counter>("tools/counter").ask("add", 2);
 *
 * @throws MessageError if there is no executable, or the node does not become ready.
 */
export async function startNode(options: StartOptions = {}): Promise<StartedNode> {
  const { start } = await import("#adapter");
  return start(options);
}
