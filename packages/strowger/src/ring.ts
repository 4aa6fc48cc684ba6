/** A growable FIFO queue in a circular array, whose capacity is a power of two. */
export class Ring<T> {
  #items: (T | undefined)[] = [];
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The oldest item, which stays. */
  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    if (this.#length === this.#items.length) this.#grow();
    this.#items[(this.#head + this.#length) & (this.#items.length - 1)] = item;
    this.#length += 1;
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#items.length - 1);
    this.#length -= 1;
    return item;
  }

  #grow(): void {
    const old = this.#items;
    // An array literal of four has room for four; an array built by pushing has room for seventeen.
    const items: (T | undefined)[] = [undefined, undefined, undefined, undefined];
    for (let at = 0; at < old.length; at += 1) {
      items[at] = old[(this.#head + at) & (old.length - 1)];
    }
    while (items.length < old.length * 2) items.push(undefined);
    this.#items = items;
    this.#head = 0;
  }
}
