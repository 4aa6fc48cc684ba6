import { asMessageError, type MessageError } from "../error.js";
import { parseType } from "../message.js";
import type { Session } from "./session.js";

/** The target of calls: an actor and a message type, or a method of the node. */
export class Name {
  readonly text: string;
  /** The message type, or the method. */
  readonly type: string;
  /** The reason why the target is invalid, if it is. */
  readonly fault: MessageError | undefined;
  /** The session in which the name is bound to the number `target`; bound on first use. */
  session: Session | undefined = undefined;
  target = 0;
  /** `true` if the name was used since the last search for an unused one. */
  isUsed = false;

  constructor(at: string | undefined, type: string) {
    this.text = at === undefined ? type : `${at} ${type}`;
    this.type = type;
    this.fault = faultOf(type);
  }
}

/**
 * The names bound in one session: at most as many as the node allows, and the recently used ones.
 */
export class Names {
  readonly #session: Session;
  readonly #most: number;
  readonly #bound: Name[] = [];
  #hand = 0;

  constructor(session: Session, most: number) {
    this.#session = session;
    this.#most = Math.max(1, most);
  }

  /** Assigns a number to a name that is not bound. */
  bind(name: Name): void {
    name.session = this.#session;
    name.isUsed = true;
    if (this.#bound.length < this.#most) {
      name.target = this.#bound.push(name);
      return;
    }
    // The clock algorithm: a name that was used since the last pass gets another round.
    for (;;) {
      const old = this.#bound[this.#hand];
      if (old === undefined || !old.isUsed) break;
      old.isUsed = false;
      this.#hand = (this.#hand + 1) % this.#most;
    }
    const old = this.#bound[this.#hand];
    if (old?.session === this.#session) old.session = undefined;
    this.#bound[this.#hand] = name;
    name.target = this.#hand + 1;
    this.#hand = (this.#hand + 1) % this.#most;
  }
}

function faultOf(type: string): MessageError | undefined {
  try {
    parseType(type);
    return undefined;
  } catch (thrown) {
    return asMessageError(thrown);
  }
}
