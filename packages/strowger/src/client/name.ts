import { asMessageError, type MessageError } from "../error.js";
import { parseType } from "../message.js";
import type { Session } from "./session.js";

/** What calls are sent to: an actor and a type of message, or a method of the node. */
export class Name {
  readonly text: string;
  /** The type of message, or the method. */
  readonly type: string;
  /** Why nothing can be sent to it. */
  readonly fault: MessageError | undefined;
  /** Where it is bound, to which number; a session binds it when it is used. */
  session: Session | undefined = undefined;
  target = 0;
  /** Used since somebody looked last for one that is not. */
  isUsed = false;

  constructor(at: string | undefined, type: string) {
    this.text = at === undefined ? type : `${at} ${type}`;
    this.type = type;
    this.fault = faultOf(type);
  }
}

/** The names of one session: as many as the node lets it bind, those in use kept. */
export class Names {
  readonly #session: Session;
  readonly #most: number;
  readonly #bound: Name[] = [];
  #hand = 0;

  constructor(session: Session, most: number) {
    this.#session = session;
    this.#most = Math.max(1, most);
  }

  /** Finds a number for a name that is not bound. */
  bind(name: Name): void {
    name.session = this.#session;
    name.isUsed = true;
    if (this.#bound.length < this.#most) {
      name.target = this.#bound.push(name);
      return;
    }
    // The clock algorithm: whoever was used gets another round.
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
