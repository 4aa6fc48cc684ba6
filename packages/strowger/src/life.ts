import type { Exit } from "./protocol.js";
import type { ActorStream } from "./stream.js";

/**
 * What few actors have in their lives: children, streams, failures, somebody who waits for the end.
 * Made when the first of it happens, because most actors are idle, and all of this is as much as
 * the rest of them.
 */
export class Life<Child> {
  readonly children = new Map<string, Child>();
  readonly streams = new Set<ActorStream>();
  restarts = 0;
  /** When it failed, as far as that counts. */
  failures: readonly number[] = [];
  lastExit: Exit | undefined;
  /** Whether it ends once the message at hand is handled. */
  stopSelf = false;
  /** Resolves when what belonged to the incarnation before has ended. */
  retired: Promise<void> | undefined;
  ended: Promise<Exit> | undefined;
  finish: ((exit: Exit) => void) | undefined;
  onIdle: (() => void) | undefined;
}
