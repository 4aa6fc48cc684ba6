import { address, type Address } from "./address.js";
import {
  cancelled,
  Delivery,
  onAbort,
  Question,
  type Server,
  Subscription,
} from "./delivery.js";
import { badRequest, failed, isMessageError, MessageError } from "./error.js";
import { Life } from "./life.js";
import { Mailbox, refused } from "./mailbox.js";
import type { Message } from "./message.js";
import type {
  ActorContext,
  ActorInfo,
  LocalRef,
  AskOptions,
  Call,
  Exit,
  Make,
  Protocol,
  SpawnOptions,
  StreamOptions,
  TellOptions,
} from "./protocol.js";
import type { Runnable } from "./scheduler.js";
import type { Shared } from "./shared.js";
import { ShutdownLimit } from "./shutdown.js";
import { notDeadline } from "./span.js";
import { ActorStream, isIterable, isStream } from "./stream.js";
import { adopted, isThenable } from "./thenable.js";
import { type ActorTrouble, writeError } from "./trouble.js";

type AnyActor = {
  readonly handle: Readonly<Record<string, (payload: unknown, call: Call) => unknown>>;
  readonly otherwise?: (payload: unknown, call: Call) => unknown;
  readonly postStop?: (exit: Exit) => void | Promise<void>;
};
type AnyMake = (context: ActorContext<never>) => AnyActor | Promise<AnyActor>;

// The only place where the types of a protocol are erased and restored. This is sound because the
// name of a message determines its types, and only the handler of that name is called with it.
export function forgetful<P extends Protocol<P>>(make: Make<P>): AnyMake;
export function forgetful(make: unknown): unknown {
  return make;
}
export function typed<P>(cell: Cell): LocalRef<P>;
export function typed(cell: unknown): unknown {
  return cell;
}

const ALONE: readonly Cell[] = [];

/**
 * An actor across all its incarnations: its mailbox, its current incarnation and its supervision.
 */
export class Cell extends Mailbox implements Runnable, Server {
  readonly path: string;
  readonly #shared: Shared;
  readonly #make: AnyMake;
  readonly #options: SpawnOptions;
  readonly #parent: Cell | undefined;
  #state: ActorInfo["state"] = "starting";
  #actor: AnyActor | undefined;
  #incarnation = 0;
  #isScheduled = false;
  /** `true` once a handler has returned a promise: asks then wait for more than a microtask. */
  #answersLater = false;
  #current: Delivery | undefined;
  #handled = 0;
  #life: Life<Cell> | undefined;

  constructor(
    shared: Shared,
    path: string,
    make: AnyMake,
    options: SpawnOptions,
    parent: Cell | undefined,
  ) {
    super(options.capacity ?? 1024, options.overflow ?? "wait");
    this.path = path;
    this.#shared = shared;
    this.#make = make;
    this.#options = options;
    this.#parent = parent;
    shared.cells.set(path, this);
    this.#start();
  }

  get address(): Address {
    return address(this.path);
  }

  get ended(): Promise<Exit> {
    const life = this.#lived();
    life.ended ??= this.#state === "ended" && life.lastExit !== undefined
      ? Promise.resolve(life.lastExit)
      : new Promise((resolve) => (life.finish = resolve));
    return life.ended;
  }

  /** `true` if it is no child of another actor. */
  get isRoot(): boolean {
    return this.#parent === undefined;
  }

  get isAlive(): boolean {
    return this.#state !== "ended" && this.#state !== "stopping";
  }

  tell(type: string, payload?: unknown, options?: TellOptions): Promise<void> {
    return this.#send(new Delivery(type, payload, undefined), options?.signal);
  }

  ask(type: string, payload?: unknown, options?: AskOptions): Promise<unknown> {
    return this.askWith(type, payload, options, undefined);
  }

  stream(type: string, payload?: unknown, options?: StreamOptions): ActorStream {
    return this.streamWith(type, payload, options, undefined);
  }

  /** Tells a message that arrived in an envelope. */
  tellWith(message: Message): Promise<void> {
    return this.#send(new Delivery(message.type, message.payload, message), undefined);
  }

  askWith(
    type: string,
    payload: unknown,
    options: AskOptions | undefined,
    message: Message | undefined,
  ): Promise<unknown> {
    const shared = this.#shared;
    const own = options?.deadlineMs;
    const deadlineMs = own ?? shared.deadlineMs;
    const sample = shared.sample();
    const question = new Question(type, payload, message, shared.wheel, deadlineMs, sample);
    const wrong = own === undefined ? undefined : notDeadline("deadlineMs", own);
    if (wrong !== undefined) question.refuse(wrong);
    if (options?.signal !== undefined && !question.isOver) question.listen(options.signal);
    if (question.isOver) return question.promise();
    if (this.#answersLater || !this.#isReady() || !this.hasRoom || !shared.scheduler.isNear
      || typeof type !== "string") {
      void this.#send(question, undefined);
      return question.promise();
    }
    void this.offer(question, undefined);
    const idle = this.#isScheduled ? undefined : this;
    this.#isScheduled = true;
    return shared.scheduler.scheduleFor(idle, question);
  }

  streamWith(
    type: string,
    payload: unknown,
    options: StreamOptions | undefined,
    message: Message | undefined,
  ): ActorStream {
    const { wheel } = this.#shared;
    const stream = new ActorStream(options?.window ?? 64, wheel);
    const subscription = new Subscription(type, payload, message, stream);
    const wrong = notDeadline("deadlineMs", options?.deadlineMs);
    if (wrong !== undefined) stream.end(wrong);
    else if (options?.deadlineMs !== undefined) wheel.add(stream, options.deadlineMs);
    if (options?.signal !== undefined && !stream.isEnded) {
      stream.forget = onAbort(options.signal, (reason) => stream.end(cancelled(type, reason)));
    }
    if (!subscription.isOver) void this.#send(subscription, undefined);
    return stream;
  }

  stop(): Promise<Exit> {
    if (this.isAlive) void this.#end({ reason: "stopped" });
    return this.ended;
  }

  info(): ActorInfo {
    return {
      address: this.address,
      state: this.#state,
      depth: this.depth,
      capacity: this.capacity,
      highWater: this.highWater,
      handled: this.#handled,
      dropped: this.dropped,
      restarts: this.#life?.restarts ?? 0,
      lastExit: this.#life?.lastExit,
      children: this.#life?.children.size ?? 0,
    };
  }

  turn(budget: number): number {
    let handled = 0;
    while (handled < budget && this.#isReady()) {
      const delivery = this.take();
      if (delivery === undefined) break;
      handled += 1;
      // A sender that gave up while the message waited has already been told.
      if (!delivery.isOver) this.#handle(delivery);
      else this.#shared.dead(this, delivery, delivery.why?.code ?? "cancelled");
    }
    return handled;
  }

  rest(): boolean {
    if (this.#isReady() && this.depth > 0) return false;
    this.#isScheduled = false;
    return true;
  }

  #lived(): Life<Cell> {
    return (this.#life ??= new Life());
  }

  #isReady(): boolean {
    return this.#state === "running" && this.#current === undefined;
  }

  #send(delivery: Delivery, signal: AbortSignal | undefined): Promise<void> {
    if (!this.isAlive) return this.#refuse(delivery, this.#shared.nobody(this.path));
    // Only untyped programs get here. The texts of errors contain the type, and an object may throw
    // when it is made a text.
    if (typeof delivery.type !== "string") {
      return this.#refuse(delivery, badRequest("the type of a message is a text"));
    }
    if (signal !== undefined && signal.aborted) {
      return this.#refuse(delivery, cancelled(delivery.type, signal.reason));
    }
    const queued = this.offer(delivery, signal);
    if (!this.#isScheduled) this.#wake();
    return queued;
  }

  #refuse(delivery: Delivery, error: MessageError): Promise<void> {
    this.dead(delivery, error);
    return refused(error);
  }

  #wake(): void {
    if (this.#isScheduled || !this.#isReady() || this.depth === 0) return;
    this.#isScheduled = true;
    this.#shared.scheduler.schedule(this);
  }

  #handle(delivery: Delivery): void {
    const actor = this.#actor;
    if (actor === undefined) return;
    this.#current = delivery;
    let result: unknown;
    try {
      const { type } = delivery;
      if (Object.hasOwn(actor.handle, type)) {
        result = actor.handle[type]?.(delivery.payload, delivery);
      } else if (actor.otherwise !== undefined) {
        result = actor.otherwise(delivery.payload, delivery);
      } else {
        const names = Object.keys(actor.handle).join(", ");
        throw badRequest(`${this.path} takes no ${JSON.stringify(type)}; it takes ${names}`);
      }
      if (isThenable(result)) {
        this.#answersLater = true;
        this.#await(delivery, adopted(result));
        return;
      }
    } catch (thrown) {
      this.#threw(delivery, thrown);
      return;
    }
    this.#done(delivery, result);
  }

  #await(delivery: Delivery, result: Promise<unknown>): void {
    const incarnation = this.#incarnation;
    result.then(
      (value) => {
        if (incarnation !== this.#incarnation) return;
        this.#done(delivery, value);
        this.#wake();
      },
      (thrown: unknown) => {
        if (incarnation !== this.#incarnation) return;
        this.#threw(delivery, thrown);
        this.#wake();
      },
    );
  }

  #done(delivery: Delivery, result: unknown): void {
    try {
      delivery.complete(result, this);
    } catch (thrown) {
      // The result is a proxy, and threw when it was asked for its properties.
      this.#threw(delivery, thrown);
      return;
    }
    this.#handled += 1;
    this.#idle();
  }

  #threw(delivery: Delivery, thrown: unknown): void {
    if (isMessageError(thrown)) {
      this.#handled += 1;
      if (delivery.isOver || isTell(delivery)) this.dead(delivery, thrown);
      else delivery.refuse(thrown);
      this.#idle();
      return;
    }
    this.#shared.dead(this, delivery, "failed");
    delivery.refuse(failed(`${this.path} failed at ${delivery.type}`, thrown));
    this.#current = undefined;
    this.#fail("handler", thrown);
    this.#life?.onIdle?.();
  }

  #idle(): void {
    this.#current = undefined;
    const life = this.#life;
    if (life === undefined) return;
    life.onIdle?.();
    if (life.stopSelf) {
      life.stopSelf = false;
      this.#over({ reason: "stopped" });
    }
  }

  /** Starts the stream of a handler's items. */
  serve(subscription: Subscription, items: unknown): void {
    const { stream } = subscription;
    if (!isStream(items)) {
      stream.end(badRequest(noStream(subscription.type, items)));
      return;
    }
    const most = this.#options.streams ?? 1024;
    const { streams } = this.#lived();
    if (streams.size >= most) {
      stream.end(new MessageError("full", `${this.path} has its ${most} streams`));
      return;
    }
    const { onEnd } = stream;
    streams.add(stream);
    stream.onEnd = (error) => {
      streams.delete(stream);
      onEnd(error);
    };
    stream.start(items);
  }

  #start(): void {
    this.#incarnation += 1;
    const incarnation = this.#incarnation;
    this.#state = "starting";
    let actor: AnyActor | Promise<AnyActor>;
    try {
      actor = this.#make(new Context(this, incarnation));
      if (isThenable(actor)) {
        this.#awaitMake(adopted(actor));
        return;
      }
    } catch (thrown) {
      this.#fail("make", thrown);
      return;
    }
    this.#run(actor);
  }

  #awaitMake(actor: Promise<AnyActor>): void {
    const incarnation = this.#incarnation;
    const number = this.#number;
    actor.then(
      (made) => {
        if (incarnation === this.#incarnation && this.#state === "starting") this.#run(made);
        else void this.#discard(made, number);
      },
      (thrown: unknown) => {
        if (incarnation === this.#incarnation && this.#state === "starting") {
          this.#fail("make", thrown);
        } else {
          this.#shared.failed(this, "make", number, thrown);
        }
      },
    );
  }

  /** Ends an actor object that was made after its incarnation had ended. */
  async #discard(made: AnyActor, number: number): Promise<void> {
    const limit = this.#limit();
    await this.#after(made, { reason: "stopped" }, limit, number);
    limit.close();
  }

  #run(actor: AnyActor): void {
    // Only untyped programs get here with something else, which would take messages for ever.
    if (typeof actor !== "object" || actor === null) {
      this.#fail("make", new TypeError(`${this.path}: make returned no actor`));
      return;
    }
    this.#actor = actor;
    this.#state = "running";
    this.#wake();
  }

  /** Starts a child of an incarnation. */
  spawn(incarnation: number, key: string, make: AnyMake, options: SpawnOptions): Cell {
    if (incarnation !== this.#incarnation || !this.isAlive) throw this.#shared.nobody(this.path);
    const child = this.#shared.spawn(`${this.path}/${key}`, make, options, this);
    if (child.isAlive) this.#lived().children.set(key, child);
    return child;
  }

  /** Ends an incarnation after the current message. */
  finish(incarnation: number): void {
    if (incarnation !== this.#incarnation || this.#state !== "running") return;
    if (this.#current === undefined) this.#over({ reason: "stopped" });
    else this.#lived().stopSelf = true;
  }

  /** Number of the current incarnation, counted from 1. */
  get #number(): number {
    return (this.#life?.restarts ?? 0) + 1;
  }

  #fail(during: ActorTrouble["during"], error: unknown): void {
    this.#shared.failed(this, during, this.#number, error);
    if (this.isAlive) this.#over({ reason: "failed", error });
  }

  /** Ends the current incarnation, and restarts the actor if its options allow it. */
  #over(exit: Exit): void {
    // A failed child may end this incarnation while a message is being handled.
    this.#interrupt(exit.error);
    const rule = this.#options.restart ?? "transient";
    const again = rule === "permanent" || (rule === "transient" && exit.reason !== "stopped");
    if (!again) {
      void this.#end(exit);
      return;
    }
    const now = this.#shared.clock.now();
    const { restarts, withinMs } = this.#options.intensity ?? { restarts: 5, withinMs: 10_000 };
    const life = this.#lived();
    life.failures = life.failures.filter((at) => now - at < withinMs);
    if (life.failures.length >= restarts) {
      const limit = `${restarts} restarts within ${withinMs} ms`;
      writeError(`${this.address} gave up after ${limit}`, exit.error);
      void this.#end({ reason: "intensity", error: exit.error });
      return;
    }
    life.failures = [...life.failures, now];
    this.#state = "restarting";
    const group = (this.#parent?.group(this) ?? ALONE).filter((cell) => cell.#yield(this));
    life.retired = this.#retire(exit, this.#newLimit());
    void life.retired.then(() => this.#anew(group, this.#pause()));
  }

  /** Restarts this actor and its group after a pause. */
  async #anew(group: readonly Cell[], pause: number): Promise<void> {
    const exit: Exit = { reason: "stopped" };
    for (const other of group.toReversed()) {
      if (other === this || other.#state !== "restarting") continue;
      if (other.#options.restart === "temporary") {
        await other.#end(exit);
        continue;
      }
      const retired = other.#retire(exit, other.#newLimit());
      other.#lived().retired = retired;
      await retired;
    }
    if (this.#state !== "restarting") return;
    this.#shared.wheelAfter(pause, () => {
      for (const cell of group.length === 0 ? [this] : group) cell.#restart();
    });
  }

  /** Returns the children to restart with a failed one, in the order in which they were spawned. */
  group(failed: Cell): readonly Cell[] {
    const strategy = this.#options.strategy ?? "one-for-one";
    if (strategy === "one-for-one") return ALONE;
    const all = [...(this.#life?.children.values() ?? [])];
    const at = all.indexOf(failed);
    // A child that fails while it is being spawned is not in the table yet.
    if (at < 0) return ALONE;
    return strategy === "one-for-all" ? all : all.slice(at);
  }

  /**
   * Stops handling messages because a sibling failed. Returns `true` if this actor is to be
   * restarted with it, and `false` if it is already restarting or ending.
   */
  #yield(failed: Cell): boolean {
    if (this === failed) return true;
    if (this.#state !== "running" && this.#state !== "starting") return false;
    this.#interrupt("one beside it failed");
    this.#incarnation += 1;
    this.#state = "restarting";
    return true;
  }

  #restart(): void {
    if (this.#state !== "restarting") return;
    this.#lived().restarts += 1;
    this.#start();
  }

  /** Drops the current message, and notifies its handler and its sender. */
  #interrupt(error: unknown): void {
    const current = this.#current;
    if (current === undefined) return;
    this.#current = undefined;
    this.#shared.dead(this, current, "failed");
    current.abort(failed(`${this.path} failed at ${current.type}`, error));
  }

  /**
   * Returns the delay before the next start in milliseconds: none after the first failure, then
   * doubling up to a maximum.
   */
  #pause(): number {
    const { initialMs, maxMs } = this.#options.backoff ?? { initialMs: 50, maxMs: 10_000 };
    const before = this.#lived().failures.length - 1;
    return before === 0 ? 0 : Math.min(maxMs, initialMs * 2 ** (before - 1));
  }

  #limit(): ShutdownLimit {
    return new ShutdownLimit(this.#shared, this.#options.shutdownMs ?? 5000);
  }

  /** Returns a limit that the parent can end as well. */
  #newLimit(): ShutdownLimit {
    const limit = this.#limit();
    this.#lived().limit = limit;
    return limit;
  }

  /** Ends what belongs to the incarnation: its children, its streams and the actor object. */
  async #retire(exit: Exit, limit: ShutdownLimit): Promise<void> {
    const number = this.#number;
    this.#incarnation += 1;
    this.#lived().lastExit = exit;
    const actor = this.#actor;
    this.#actor = undefined;
    const children = [...(this.#life?.children.values() ?? [])].reverse();
    for (const child of children) {
      const stopped = child.stop();
      if (!(await limit.wait(stopped))) child.#life?.limit?.expire();
      await stopped;
    }
    const streams = [...(this.#life?.streams ?? [])];
    if (streams.length > 0) {
      const why = failed(`${this.path} has ended`, exit.error ?? exit.reason);
      for (const stream of streams) stream.end(why);
    }
    if (actor !== undefined) await this.#after(actor, exit, limit, number);
    limit.close();
  }

  /** Calls `postStop`, and waits for it. */
  async #after(actor: AnyActor, exit: Exit, limit: ShutdownLimit, number: number): Promise<void> {
    const caught = (thrown: unknown): void => {
      this.#shared.failed(this, "postStop", number, thrown);
    };
    try {
      const stopped = actor.postStop?.(exit);
      // It may be rejected after the limit.
      if (isThenable(stopped)) await limit.wait(adopted(stopped).then(undefined, caught));
    } catch (thrown) {
      caught(thrown);
    }
  }

  /** Ends the actor for good. */
  async #end(exit: Exit): Promise<void> {
    this.#state = "stopping";
    const before = this.#life?.limit;
    const limit = this.#newLimit();
    let last = exit;
    if (this.#current !== undefined && !(await limit.wait(this.#finished()))) {
      last = { reason: "killed" };
      const message = `${this.path} was killed: it did not end in time`;
      this.#current?.abort(new MessageError("failed", message));
      this.#current = undefined;
    }
    this.clear(this.#shared.nobody(this.path));
    const retired = this.#life?.retired;
    if (retired !== undefined) {
      if (!(await limit.wait(retired))) before?.expire();
      await retired;
    }
    await this.#retire(last, limit);
    this.#state = "ended";
    this.#shared.cells.delete(this.path);
    this.#parent?.childEnded(this, last);
    this.#life?.finish?.(last);
  }

  childEnded(child: Cell, exit: Exit): void {
    const key = child.path.slice(this.path.length + 1);
    const children = this.#life?.children;
    if (children?.get(key) === child) children.delete(key);
    if (exit.reason === "intensity" && this.isAlive) this.#fail("child", exit.error);
  }

  #finished(): Promise<void> {
    return new Promise((resolve) => {
      const life = this.#lived();
      life.onIdle = () => {
        life.onIdle = undefined;
        resolve();
      };
    });
  }

  /** Reports a message that the mailbox dropped or that has no actor to handle it. */
  protected override dead(delivery: Delivery, error: MessageError): void {
    this.#shared.dead(this, delivery, error.code);
    if (!delivery.isOver) delivery.refuse(error);
  }
}

/**
 * The context of an incarnation. Getters create the functions on access, so that they can be
 * destructured and cost nothing if unused.
 */
class Context implements ActorContext<never> {
  readonly #cell: Cell;
  readonly #incarnation: number;

  constructor(cell: Cell, incarnation: number) {
    this.#cell = cell;
    this.#incarnation = incarnation;
  }

  get self(): LocalRef<never> {
    return typed<never>(this.#cell);
  }

  get spawn() {
    return <C extends Protocol<C>>(
      key: string,
      make: Make<C>,
      options: SpawnOptions = {},
    ): LocalRef<C> => {
      return typed<C>(this.#cell.spawn(this.#incarnation, key, forgetful(make), options));
    };
  }

  get stop() {
    return (): void => this.#cell.finish(this.#incarnation);
  }
}

function isTell(delivery: Delivery): boolean {
  return !(delivery instanceof Question) && !(delivery instanceof Subscription);
}

function noStream(type: string, result: unknown): string {
  const text = `${type} is no stream`;
  if (!isIterable(result)) return text;
  return `${text}: its handler returns a collection, which is an answer; return its values(), or`
    + " make the handler a generator";
}
