import { type Clock } from "../clock.js";
import { asMessageError, MessageError } from "../error.js";
import { Ring } from "../ring.js";
import { checkDeadline, checkPause } from "../span.js";
import { Alarm, TimerWheel } from "../wheel.js";
import { type Dial, type Place, shownPlace } from "./line.js";
import type { Outgoing } from "./outgoing.js";
import { Session } from "./session.js";

/** How a node is connected to; each has a default. */
export interface ConnectOptions {
  /** What a door over TCP or WebSocket asks for. */
  readonly token?: string;
  /** Milliseconds that an ask may take which says nothing else: 5000. */
  readonly deadlineMs?: number;
  /** Milliseconds that the node may take to say hello: 5000. */
  readonly helloMs?: number;
  /**
   * What a call does while there is no connection: `wait` for the next one, within its deadline
   * (the default), or `fail` at once.
   */
  readonly whileLost?: "wait" | "fail";
  /** Calls that may wait for a connection or for room in it: 65 536. */
  readonly waiting?: number;
  /** Pauses between attempts to connect again: 50 ms, doubled up to 5000. */
  readonly backoff?: { readonly initialMs: number; readonly maxMs: number };
}

/**
 * `open`: connected. `lost`: it tries to connect again. `idle`: the node let go of a connection
 * that nobody used; the next call connects. `closed`: for good.
 */
export type ConnectionState = "open" | "lost" | "idle" | "closed";

/** What a connection needs of the world. */
export interface Surroundings {
  readonly dial: Dial;
  readonly clock: Clock;
  /** From 0 to 1: spreads the attempts of many clients. */
  readonly random: () => number;
  /** The first id of the first session. */
  readonly firstId?: number;
}

/** Sessions with one node, one after another, and the calls that wait for the next. */
export class Connection {
  readonly wheel: TimerWheel;
  readonly deadlineMs: number;
  readonly #place: Place;
  readonly #options: ConnectOptions;
  readonly #around: Surroundings;
  readonly #waiting = new Ring<Outgoing>();
  readonly #most: number;
  #session: Session | undefined;
  #state: ConnectionState = "lost";
  #attempts = 0;
  #isTrying = false;
  #firstId: number;
  #alarm: Alarm | undefined;
  #opened = pledge();
  /** Why there is no connection. */
  #why = new MessageError("unreachable", "not connected yet");

  constructor(place: Place, options: ConnectOptions, around: Surroundings) {
    checkDeadline("deadlineMs", options.deadlineMs);
    checkDeadline("helloMs", options.helloMs);
    checkPause("backoff.initialMs", options.backoff?.initialMs);
    checkPause("backoff.maxMs", options.backoff?.maxMs);
    this.#place = place;
    this.#options = options;
    this.#around = around;
    this.#most = options.waiting ?? 65_536;
    this.#firstId = around.firstId ?? 1;
    this.deadlineMs = options.deadlineMs ?? 5000;
    this.wheel = new TimerWheel(around.clock);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The version that the node speaks, 0 while that is not known. */
  get protocol(): number {
    return this.#session?.protocol ?? 0;
  }

  /** Connects for the first time; rejects if that does not work. */
  async begin(): Promise<void> {
    try {
      await this.#attempt();
    } catch (thrown) {
      const error = asMessageError(thrown);
      this.close(error);
      throw error;
    }
  }

  /** Resolves when it is connected, at once if it is; rejects when it is closed. */
  opened(): Promise<void> {
    this.#wake();
    return this.#opened.promise;
  }

  /** Sends a call, now or when there is room. */
  submit(call: Outgoing): void {
    const session = this.#session;
    if (session !== undefined && this.#waiting.length === 0 && session.hasRoom) {
      session.send(call, Math.min(0xffff_ffff, Math.ceil(call.deadlineMs)));
      return;
    }
    if (this.#state === "closed") {
      call.fail(this.#why);
    } else if (this.#state === "lost" && this.#options.whileLost === "fail") {
      call.fail(this.#why);
    } else if (this.#waiting.length >= this.#most) {
      call.fail(new MessageError("full", `${this.#most} calls wait, which is the limit`));
    } else {
      call.waitsSince = this.#around.clock.now();
      this.#waiting.push(call);
      this.#wake();
      this.#pump();
    }
  }

  /** Ends all that is pending or waits, and does not connect again. */
  close(error: MessageError): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#why = error;
    this.#pause(undefined);
    const session = this.#session;
    this.#session = undefined;
    session?.end(error);
    this.#failWaiting(error);
    this.#opened.reject(error);
    // It may have been kept, and is not open any more.
    this.#opened = pledge();
    this.#opened.reject(error);
    this.wheel.close();
  }

  #pump(): void {
    for (;;) {
      const session = this.#session;
      if (session === undefined) return;
      if (session.isSpent && session.isEmpty) {
        // Not before: what goes over another line could overtake what is pending on this one.
        session.end(new MessageError("idle", "there are no more ids on this connection"));
        return;
      }
      if (!session.hasRoom) return;
      const call = this.#waiting.shift();
      if (call === undefined) return;
      if (call.isOver) continue;
      session.send(call, this.#left(call));
    }
  }

  /** Milliseconds that are left of a call's deadline; 0 if it has none. */
  #left(call: Outgoing): number {
    if (call.deadlineMs === 0) return 0;
    const waited = this.#around.clock.now() - (call.waitsSince ?? 0);
    return Math.min(0xffff_ffff, Math.max(1, Math.ceil(call.deadlineMs - waited)));
  }

  async #attempt(): Promise<void> {
    const session: Session = new Session(
      {
        room: () => {
          if (session === this.#session) this.#pump();
        },
        over: (error) => {
          if (session === this.#session) this.#lost(session, error);
        },
      },
      this.#options.token,
      this.#firstId,
    );
    this.#firstId = 1;
    const helloMs = this.#options.helloMs ?? 5000;
    this.#pause(new Alarm(() => session.end(this.#silent(helloMs))), helloMs);
    await session.begin(this.#around.dial(this.#place, session));
    this.#pause(undefined);
    if (session.error !== undefined) throw session.error;
    if (this.#state === "closed") {
      session.end(this.#why);
      throw this.#why;
    }
    this.#state = "open";
    this.#session = session;
    this.#opened.resolve();
    this.#pump();
  }

  #silent(ms: number): MessageError {
    const text = `${shownPlace(this.#place)} said no hello within ${ms} ms`;
    return new MessageError("deadline", text);
  }

  #lost(session: Session, error: MessageError): void {
    this.#session = undefined;
    this.#opened = pledge();
    if (session.hasAnswered) this.#attempts = 0;
    if (error.code === "idle") {
      this.#state = "idle";
      if (this.#waiting.length > 0) this.#wake();
      return;
    }
    this.#state = "lost";
    this.#failed(error);
  }

  /** Connects at once if it was only let go. */
  #wake(): void {
    if (this.#state === "idle" && !this.#isTrying) this.#try();
  }

  #try(): void {
    this.#isTrying = true;
    this.#attempt().then(
      () => {
        this.#isTrying = false;
      },
      (thrown: unknown) => {
        this.#isTrying = false;
        if (this.#state === "closed") return;
        this.#state = "lost";
        this.#failed(asMessageError(thrown));
      },
    );
  }

  /** Tries again after a pause; each is longer than the one before, until the node answers. */
  #failed(error: MessageError): void {
    const text = `no connection to ${shownPlace(this.#place)}: ${error.message}`;
    this.#why = new MessageError("unreachable", text, { cause: error });
    const isHopeless = error.code === "refused" || error.code === "protocol";
    if (isHopeless || this.#options.whileLost === "fail") this.#failWaiting(this.#why);
    const { initialMs, maxMs } = this.#options.backoff ?? { initialMs: 50, maxMs: 5000 };
    const full = Math.min(maxMs, initialMs * 2 ** this.#attempts);
    this.#attempts += 1;
    const ms = full * (0.5 + this.#around.random() / 2);
    this.#pause(new Alarm(() => this.#try()), ms);
  }

  /** Sets the one alarm that a connection has, in place of the one before. */
  #pause(alarm: Alarm | undefined, ms = 0): void {
    if (this.#alarm !== undefined) this.wheel.remove(this.#alarm);
    this.#alarm = alarm;
    if (alarm !== undefined) this.wheel.add(alarm, ms);
  }

  #failWaiting(error: MessageError): void {
    for (let call = this.#waiting.shift(); call; call = this.#waiting.shift()) call.fail(error);
  }
}

interface Pledge {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: MessageError) => void;
}

/** A promise that may be rejected though nobody looks at it. */
function pledge(): Pledge {
  let resolve = (): void => {};
  let reject = (_error: MessageError): void => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}
