/** A queue in an array that is used in a circle; it grows by doubling. */
export class Ring<T> {
  #items: (T | undefined)[] = [];
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
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
    const size = Math.max(4, old.length * 2);
    const items: (T | undefined)[] = [];
    for (let at = 0; at < size; at += 1) {
      items.push(at < old.length ? old[(this.#head + at) & (old.length - 1)] : undefined);
    }
    this.#items = items;
    this.#head = 0;
  }
}
