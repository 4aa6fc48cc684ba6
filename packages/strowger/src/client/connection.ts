import { type Clock } from "../clock.js";
import { asMessageError, MessageError } from "../error.js";
import { LeavableQueue } from "../queue.js";
import { checkDeadline, checkPause } from "../span.js";
import { Alarm, TimerWheel } from "../wheel.js";
import { type Dial, type Place, shownPlace } from "./line.js";
import type { Outgoing } from "./outgoing.js";
import { Session } from "./session.js";

/** Options of a connection to a node. */
export interface ConnectOptions {
  /** The token that an endpoint over TCP or WebSocket requires. */
  readonly token?: string;
  /** Deadline in milliseconds of asks that give none. Default: 5000. */
  readonly deadlineMs?: number;
  /** Time limit in milliseconds for the hello of the node. Default: 5000. */
  readonly helloMs?: number;
  /**
   * The behaviour of a call while there is no connection: `wait` for the next one within its
   * deadline (the default), or `fail` at once.
   */
  readonly whileLost?: "wait" | "fail";
  /** Maximum number of calls that wait for a connection or for room in it. Default: 65 536. */
  readonly waiting?: number;
  /**
   * Delays between attempts to reconnect, in milliseconds: doubled each time, from `initialMs` up
   * to `maxMs`. Default: from 50 to 5000.
   */
  readonly backoff?: { readonly initialMs: number; readonly maxMs: number };
}

/**
 * The state of a connection. `open`: connected. `lost`: reconnecting. `idle`: closed by the node
 * because it was unused; the next call reconnects. `closed`: closed for good.
 */
export type ConnectionState = "open" | "lost" | "idle" | "closed";

/** The environment of a connection, which tests can replace. */
export interface Surroundings {
  readonly dial: Dial;
  readonly clock: Clock;
  /** Returns a number from 0 to 1, which spreads the reconnections of many clients. */
  readonly random: () => number;
  /** The first call id of the first session. */
  readonly firstId?: number;
}

/** Successive sessions with one node, and the calls that wait for the next session. */
export class Connection {
  readonly wheel: TimerWheel;
  readonly deadlineMs: number;
  readonly #place: Place;
  readonly #options: ConnectOptions;
  readonly #around: Surroundings;
  readonly #waiting = new LeavableQueue<Outgoing>();
  readonly #most: number;
  #session: Session | undefined;
  #state: ConnectionState = "lost";
  #attempts = 0;
  #isTrying = false;
  #firstId: number;
  #alarm: Alarm | undefined;
  #opened = pledge();
  /** The reason why there is no connection. */
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

  /** The protocol version of the node, or 0 while it is unknown. */
  get protocol(): number {
    return this.#session?.protocol ?? 0;
  }

  /** Connects for the first time; rejects if the connection fails. */
  async begin(): Promise<void> {
    try {
      await this.#attempt();
    } catch (thrown) {
      const error = asMessageError(thrown);
      this.close(error);
      throw error;
    }
  }

  /** Resolves once the connection is open; rejects when it is closed for good. */
  opened(): Promise<void> {
    this.#wake();
    return this.#opened.promise;
  }

  /** Sends a call, now or as soon as there is room. */
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
      const place = this.#waiting.push(call);
      const since = this.#around.clock.now();
      call.waits = { since, leave: () => void this.#waiting.leave(place) };
      this.#wake();
      this.#pump();
    }
  }

  /** Fails all pending and waiting calls, and does not reconnect. */
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
    // If the connection was open, its promise has resolved: replace it with a rejected one.
    this.#opened = pledge();
    this.#opened.reject(error);
    this.wheel.close();
  }

  #pump(): void {
    for (;;) {
      const session = this.#session;
      if (session === undefined) return;
      if (session.isSpent && session.isEmpty) {
        // Not before it is empty: a call on a new line could overtake one that is pending here.
        session.end(new MessageError("idle", "there are no more ids on this connection"));
        return;
      }
      if (!session.hasRoom) return;
      const call = this.#waiting.shift();
      if (call === undefined) return;
      session.send(call, this.#left(call));
    }
  }

  /** Returns the milliseconds left of a call's deadline; 0 if it has none. */
  #left(call: Outgoing): number {
    if (call.deadlineMs === 0) return 0;
    const waited = this.#around.clock.now() - (call.waits?.since ?? 0);
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

  /** Reconnects at once if the node closed the connection because it was idle. */
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

  /**
   * Schedules the next attempt. Each delay is longer than the last, until the node answers a call.
   */
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

  /** Sets the only alarm of the connection, and cancels the previous one. */
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

/** Creates a promise whose rejection does not have to be handled. */
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
