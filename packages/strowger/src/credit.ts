/** The most credit that counts. */
const MOST = 1 << 20;

/** The books of a source: it sends what its reader takes, and no more. */
export class Outlet {
  #credit = 0;

  /** How many items may be sent. */
  get credit(): number {
    return this.#credit;
  }

  /** Takes credit that the reader gave; what is beyond the most is not counted. */
  grant(credit: number): void {
    this.#credit = Math.min(MOST, this.#credit + credit);
  }

  /** Whether one item may be sent; if so it is written down. */
  send(): boolean {
    if (this.#credit === 0) return false;
    this.#credit -= 1;
    return true;
  }
}

/** The books of a reader with a window. */
export class Inlet {
  /** What is granted at first. */
  readonly first: number;
  readonly #half: number;
  #taken = 0;

  constructor(window: number) {
    this.first = Math.min(MOST, Math.max(1, Math.floor(window)));
    this.#half = Math.ceil(this.first / 2);
  }

  /** Writes down that an item was taken; returns what is to be granted now. */
  take(): number {
    this.#taken += 1;
    if (this.#taken < this.#half) return 0;
    const granted = this.#taken;
    this.#taken = 0;
    return granted;
  }
}
