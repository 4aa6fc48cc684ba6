import { cancelled, type Delivery, onAbort } from "./delivery.js";
import { MessageError, stackless } from "./error.js";
import type { Overflow } from "./protocol.js";
import { Ring } from "./ring.js";

/** What a mailbox reports about messages that it lets go. */
export type Refuse = (delivery: Delivery, error: MessageError) => void;

interface Sender {
  readonly delivery: Delivery;
  readonly resolve: () => void;
  readonly reject: (error: MessageError) => void;
  forget: () => void;
  isGone: boolean;
}

const QUEUED = Promise.resolve();

/** Messages that wait, up to a capacity, and senders that wait for room. */
export class Mailbox {
  highWater = 0;
  dropped = 0;
  readonly capacity: number;
  readonly #overflow: Overflow;
  readonly #refuse: Refuse;
  readonly #messages = new Ring<Delivery>();
  #senders: Ring<Sender> | undefined;

  constructor(capacity: number, overflow: Overflow, refuse: Refuse) {
    this.capacity = Math.max(1, Math.floor(capacity));
    this.#overflow = overflow;
    this.#refuse = refuse;
  }

  get depth(): number {
    return this.#messages.length;
  }

  /** Queues a message, or does what the rule says; resolves when it is queued. */
  push(delivery: Delivery, signal: AbortSignal | undefined): Promise<void> {
    // Who comes later must not overtake a sender that waits.
    if (this.#messages.length < this.capacity && (this.#senders?.length ?? 0) === 0) {
      this.#messages.push(delivery);
      if (this.#messages.length > this.highWater) this.highWater = this.#messages.length;
      return QUEUED;
    }
    switch (this.#overflow) {
      case "wait":
        return this.#wait(delivery, signal);
      case "fail":
        return this.#reject(delivery, this.#full());
      case "drop-newest":
        this.dropped += 1;
        this.#refuse(delivery, this.#full());
        return QUEUED;
      case "drop-oldest":
        this.#drop();
        break;
      case "keep-latest":
        while (this.#messages.length > 0) this.#drop();
        break;
    }
    this.#messages.push(delivery);
    return QUEUED;
  }

  shift(): Delivery | undefined {
    const delivery = this.#messages.shift();
    if (this.#senders !== undefined) this.#admit(this.#senders);
    return delivery;
  }

  /** Refuses all that waits. */
  clear(error: MessageError): void {
    for (let each = this.#messages.shift(); each !== undefined; each = this.#messages.shift()) {
      this.#refuse(each, error);
    }
    const senders = this.#senders;
    this.#senders = undefined;
    for (let each = senders?.shift(); each !== undefined; each = senders?.shift()) {
      if (each.isGone) continue;
      each.forget();
      this.#refuse(each.delivery, error);
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
        this.#refuse(delivery, error);
        reject(error);
      });
    });
    queued.catch(() => {});
    return queued;
  }

  #admit(senders: Ring<Sender>): void {
    while (this.#messages.length < this.capacity) {
      const sender = senders.shift();
      if (sender === undefined) return;
      if (sender.isGone) continue;
      sender.forget();
      this.#messages.push(sender.delivery);
      sender.resolve();
    }
  }

  #drop(): void {
    const oldest = this.#messages.shift();
    if (oldest === undefined) return;
    this.dropped += 1;
    this.#refuse(oldest, this.#full());
  }

  #reject(delivery: Delivery, error: MessageError): Promise<void> {
    this.#refuse(delivery, error);
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
