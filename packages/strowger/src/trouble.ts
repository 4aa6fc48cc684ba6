import type { Address } from "./address.js";
import { nextTurn } from "./clock.js";
import { oneLine } from "./error.js";
import { type ListenerFailed, Topic } from "./topic.js";

/** An error that no caller could be told: a failure of an actor, or of a listener. */
export type Trouble = ActorTrouble | ListenerTrouble;

/** A failure of one incarnation of an actor. */
export interface ActorTrouble {
  readonly source: "actor";
  readonly address: Address;
  /** Number of the incarnation that failed, counted from 1. */
  readonly incarnation: number;
  /** The function that failed, or `child` if a child exceeded its restart intensity. */
  readonly during: "make" | "handler" | "postStop" | "child";
  readonly error: unknown;
}

/** An error that a listener threw, or with which its promise was rejected. */
export interface ListenerTrouble {
  readonly source: "listener";
  /** Name of the topic; `dead letters`, or `log` for the option of `startNode`. */
  readonly topic: string;
  readonly error: unknown;
}

/** Maximum number of troubles that are published in one turn of the event loop. */
const PER_TURN = 4096;

/** Publishes the errors of actors and listeners; that of a listener may go to stderr instead. */
export class Troubles {
  readonly topic = new Topic<Trouble>((error, isFirst) => {
    if (isFirst) complain("troubles", error);
  });
  /** For a listener whose reaction to a trouble causes another one. */
  readonly #budget = new TurnBudget(PER_TURN);

  /** Publishes a trouble. Returns `false` if it did not reach any subscriber. */
  publish(trouble: Trouble): boolean {
    if (this.topic.subscribers === 0 || !this.#budget.take()) return false;
    this.topic.publish(trouble);
    return true;
  }

  /** Returns a function that reports the errors of a topic's listeners. */
  reporter(topic: string): ListenerFailed {
    return (error, isFirst) => {
      // While troubles are published, a listener of theirs has caused this error.
      const isHeard = !this.topic.isPublishing
        && this.publish({ source: "listener", topic, error });
      if (!isHeard && isFirst) complain(topic, error);
    };
  }
}

function complain(topic: string, error: unknown): void {
  writeError(`a listener of the topic ${JSON.stringify(topic)} failed`, error);
}

/** Writes one line to standard error, for people. */
export function writeError(what: string, error: unknown): void {
  console.error(`strowger: ${what}: ${oneLine(error)}`);
}

/**
 * Limits what happens in one turn of the event loop. Microtasks that cause each other never leave
 * their turn, so without a limit they would block the process.
 */
export class TurnBudget {
  readonly #most: number;
  #left: number;

  constructor(most: number) {
    this.#most = most;
    this.#left = most;
  }

  /** Returns `false` if this turn has used up the budget. */
  take(): boolean {
    if (this.#left === 0) return false;
    if (this.#left === this.#most) nextTurn(() => void (this.#left = this.#most));
    this.#left -= 1;
    return true;
  }
}
