import type { Exit } from "./protocol.js";
import type { ShutdownLimit } from "./shutdown.js";
import type { ActorStream } from "./stream.js";

/**
 * State that few actors need: children, streams, failures and waiters for the exit. Created on
 * first use, because most actors are idle and this state takes as much memory as the rest of an
 * actor.
 */
export class Life<Child> {
  readonly children = new Map<string, Child>();
  readonly streams = new Set<ActorStream>();
  restarts = 0;
  /** The times of the failures that still count towards the intensity. */
  failures: readonly number[] = [];
  lastExit: Exit | undefined;
  /** `true` if the incarnation ends after the current message. */
  stopSelf = false;
  /** Resolves when everything that belonged to the previous incarnation has ended. */
  retired: Promise<void> | undefined;
  /** The limit of the incarnation that is ending, or of the actor. */
  limit: ShutdownLimit | undefined;
  ended: Promise<Exit> | undefined;
  finish: ((exit: Exit) => void) | undefined;
  onIdle: (() => void) | undefined;
}
