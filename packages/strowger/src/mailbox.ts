import { cancelled, type Delivery, onAbort } from "./delivery.js";
import { MessageError, stackless } from "./error.js";
import type { Overflow } from "./protocol.js";
import { LeavableQueue } from "./queue.js";
import { Ring } from "./ring.js";

interface Sender {
  readonly delivery: Delivery;
  readonly resolve: () => void;
  readonly reject: (error: MessageError) => void;
  forget: () => void;
}

const QUEUED = Promise.resolve();

/**
 * A bounded queue of messages, and the senders that wait for room in it.
 *
 * A base class of actors, not a field: there is one mailbox per actor, and a separate object would
 * take a tenth of the memory of an actor.
 */
export abstract class Mailbox {
  /** The oldest message. Most mailboxes never hold two at a time, and so never need the ring. */
  #first: Delivery | undefined;
  #rest: Ring<Delivery> | undefined;
  #senders: LeavableQueue<Sender> | undefined;
  protected highWater = 0;
  protected dropped = 0;
  protected readonly capacity: number;
  readonly #overflow: Overflow;

  constructor(capacity: number, overflow: Overflow) {
    this.capacity = Math.max(1, Math.floor(capacity));
    this.#overflow = overflow;
  }

  /** Called with each message that is dropped. */
  protected abstract dead(delivery: Delivery, error: MessageError): void;

  /** Number of queued messages. */
  protected get depth(): number {
    const rest = this.#rest === undefined ? 0 : this.#rest.length;
    return this.#first === undefined ? rest : rest + 1;
  }

  /** `true` if a message can be queued at once. */
  protected get hasRoom(): boolean {
    // A later message must not overtake a sender that waits.
    const hasNoSenders = this.#senders === undefined || this.#senders.length === 0;
    return hasNoSenders && this.depth < this.capacity;
  }

  /**
   * Queues a message, or applies the overflow rule. Resolves once the message is queued or dropped.
   */
  protected offer(delivery: Delivery, signal: AbortSignal | undefined): Promise<void> {
    const { depth } = this;
    // A later message must not overtake a sender that waits.
    if (depth < this.capacity && (this.#senders === undefined || this.#senders.length === 0)) {
      if (depth === 0) this.#first = delivery;
      else (this.#rest ??= new Ring()).push(delivery);
      if (depth >= this.highWater) this.highWater = depth + 1;
      return QUEUED;
    }
    if (this.#trim()) return this.offer(delivery, signal);
    switch (this.#overflow) {
      case "wait":
        return this.#wait(delivery, signal);
      case "fail":
        return this.#reject(delivery, this.#full());
      case "drop-newest":
        this.dropped += 1;
        this.dead(delivery, this.#full());
        return QUEUED;
      case "drop-oldest":
        this.#drop();
        break;
      case "keep-latest":
        while (this.depth > 0) this.#drop();
        break;
    }
    this.#push(delivery);
    return QUEUED;
  }

  /** Takes the oldest message, and admits waiting senders. */
  protected take(): Delivery | undefined {
    const delivery = this.#shift();
    if (this.#senders !== undefined) this.#admit(this.#senders);
    return delivery;
  }

  /** Drops all queued messages, and rejects all waiting senders. */
  protected clear(error: MessageError): void {
    for (let each = this.#shift(); each !== undefined; each = this.#shift()) {
      this.dead(each, error);
    }
    const senders = this.#senders;
    this.#senders = undefined;
    for (let each = senders?.shift(); each !== undefined; each = senders?.shift()) {
      each.forget();
      this.dead(each.delivery, error);
      each.reject(error);
    }
  }

  #push(delivery: Delivery): void {
    if (this.depth === 0) this.#first = delivery;
    else (this.#rest ??= new Ring()).push(delivery);
  }

  #shift(): Delivery | undefined {
    const first = this.#first;
    if (first === undefined) return this.#rest?.shift();
    this.#first = undefined;
    return first;
  }

  /**
   * Drops messages at the front whose senders have given up, in favour of senders that wait.
   * Returns `true` if there were any.
   */
  #trim(): boolean {
    let oldest = this.#first ?? this.#rest?.first;
    if (oldest === undefined || !oldest.isOver) return false;
    for (; oldest?.isOver === true; oldest = this.#first ?? this.#rest?.first) {
      this.#shift();
      this.dead(oldest, oldest.why ?? cancelled(oldest.type));
    }
    if (this.#senders !== undefined) this.#admit(this.#senders);
    return true;
  }

  #wait(delivery: Delivery, signal: AbortSignal | undefined): Promise<void> {
    this.#senders ??= new LeavableQueue();
    const senders = this.#senders;
    if (senders.length >= this.capacity) return this.#reject(delivery, this.#full());
    const queued = new Promise<void>((resolve, reject) => {
      const sender: Sender = { delivery, resolve, reject, forget: () => {} };
      const place = senders.push(sender);
      const leave = (error: MessageError): void => {
        if (!senders.leave(place)) return;
        sender.forget();
        this.dead(delivery, error);
        reject(error);
      };
      delivery.whenOver(() => leave(delivery.why ?? cancelled(delivery.type)));
      if (signal !== undefined) {
        sender.forget = onAbort(signal, (reason) => leave(cancelled(delivery.type, reason)));
      }
    });
    queued.catch(() => {});
    return queued;
  }

  #admit(senders: LeavableQueue<Sender>): void {
    while (this.depth < this.capacity) {
      const sender = senders.shift();
      if (sender === undefined) return;
      sender.forget();
      this.#push(sender.delivery);
      sender.resolve();
    }
  }

  #drop(): void {
    const oldest = this.#shift();
    if (oldest === undefined) return;
    this.dropped += 1;
    this.dead(oldest, this.#full());
  }

  #reject(delivery: Delivery, error: MessageError): Promise<void> {
    this.dead(delivery, error);
    return refused(error);
  }

  #full(): MessageError {
    const details = { capacity: this.capacity };
    return stackless(() => new MessageError("full", "the mailbox is full", { details }));
  }
}

/** Creates a rejected promise that does not have to be handled. */
export function refused(error: MessageError): Promise<void> {
  const rejected = Promise.reject(error);
  rejected.catch(() => {});
  return rejected;
}
