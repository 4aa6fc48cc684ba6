import { cancelled, type Delivery, onAbort } from "./delivery.js";
import { MessageError, stackless } from "./error.js";
import type { Overflow } from "./protocol.js";
import { Ring } from "./ring.js";

/** Who hears of messages that a mailbox lets go. */
export interface Owner {
  dead(delivery: Delivery, error: MessageError): void;
}

interface Sender {
  readonly delivery: Delivery;
  readonly resolve: () => void;
  readonly reject: (error: MessageError) => void;
  forget: () => void;
  isGone: boolean;
}

const QUEUED = Promise.resolve();

/** Messages that wait, up to a capacity, and senders that wait for room. */
export class Mailbox extends Ring<Delivery> {
  highWater = 0;
  dropped = 0;
  readonly capacity: number;
  readonly #overflow: Overflow;
  readonly #owner: Owner;
  #senders: Ring<Sender> | undefined;

  constructor(capacity: number, overflow: Overflow, owner: Owner) {
    super();
    this.capacity = Math.max(1, Math.floor(capacity));
    this.#overflow = overflow;
    this.#owner = owner;
  }

  /** Queues a message, or does what the rule says; resolves when it is queued. */
  offer(delivery: Delivery, signal: AbortSignal | undefined): Promise<void> {
    // Who comes later must not overtake a sender that waits.
    if (this.length < this.capacity && (this.#senders?.length ?? 0) === 0) {
      this.push(delivery);
      if (this.length > this.highWater) this.highWater = this.length;
      return QUEUED;
    }
    switch (this.#overflow) {
      case "wait":
        return this.#wait(delivery, signal);
      case "fail":
        return this.#reject(delivery, this.#full());
      case "drop-newest":
        this.dropped += 1;
        this.#owner.dead(delivery, this.#full());
        return QUEUED;
      case "drop-oldest":
        this.#drop();
        break;
      case "keep-latest":
        while (this.length > 0) this.#drop();
        break;
    }
    this.push(delivery);
    return QUEUED;
  }

  /** Takes the oldest message out, and lets in a sender that waits. */
  take(): Delivery | undefined {
    const delivery = this.shift();
    if (this.#senders !== undefined) this.#admit(this.#senders);
    return delivery;
  }

  /** Refuses all that waits. */
  clear(error: MessageError): void {
    for (let each = this.shift(); each !== undefined; each = this.shift()) {
      this.#owner.dead(each, error);
    }
    const senders = this.#senders;
    this.#senders = undefined;
    for (let each = senders?.shift(); each !== undefined; each = senders?.shift()) {
      if (each.isGone) continue;
      each.forget();
      this.#owner.dead(each.delivery, error);
      each.reject(error);
    }
  }

  #wait(delivery: Delivery, signal: AbortSignal | undefined): Promise<void> {
    this.#senders ??= new Ring();
    const senders = this.#senders;
    if (senders.length >= this.capacity) return this.#reject(delivery, this.#full());
    const queued = new Promise<void>((resolve, reject) => {
      const sender: Sender = { delivery, resolve, reject, forget: () => {}, isGone: false };
      senders.push(sender);
      if (signal === undefined) return;
      sender.forget = onAbort(signal, () => {
        sender.isGone = true;
        const error = cancelled(delivery.type);
        this.#owner.dead(delivery, error);
        reject(error);
      });
    });
    queued.catch(() => {});
    return queued;
  }

  #admit(senders: Ring<Sender>): void {
    while (this.length < this.capacity) {
      const sender = senders.shift();
      if (sender === undefined) return;
      if (sender.isGone) continue;
      sender.forget();
      this.push(sender.delivery);
      sender.resolve();
    }
  }

  #drop(): void {
    const oldest = this.shift();
    if (oldest === undefined) return;
    this.dropped += 1;
    this.#owner.dead(oldest, this.#full());
  }

  #reject(delivery: Delivery, error: MessageError): Promise<void> {
    this.#owner.dead(delivery, error);
    return refused(error);
  }

  #full(): MessageError {
    const details = { capacity: this.capacity };
    return stackless(() => new MessageError("full", "the mailbox is full", { details }));
  }
}

/** A rejection that nobody has to look at. */
export function refused(error: MessageError): Promise<void> {
  const rejected = Promise.reject(error);
  rejected.catch(() => {});
  return rejected;
}
