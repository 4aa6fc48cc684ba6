/** A FIFO queue that an item can leave at once, wherever it is in it. */
export class LeavableQueue<T> {
  #first: Place<T> | undefined;
  #last: Place<T> | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Adds an item. Returns its place, which is left with `leave`. */
  push(item: T): Place<T> {
    const place: Place<T> = { item, before: this.#last, after: undefined, isLeft: false };
    if (this.#last === undefined) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
    this.#length += 1;
    return place;
  }

  shift(): T | undefined {
    const first = this.#first;
    if (first === undefined) return undefined;
    this.leave(first);
    return first.item;
  }

  /** Removes an item. Returns `false` if it is not in the queue any more. */
  leave(place: Place<T>): boolean {
    if (place.isLeft) return false;
    place.isLeft = true;
    const { before, after } = place;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    this.#length -= 1;
    return true;
  }
}

/** A place in a {@link LeavableQueue}. */
export interface Place<T> {
  readonly item: T;
  before: Place<T> | undefined;
  after: Place<T> | undefined;
  isLeft: boolean;
}
