/** Maximum credit; more is ignored. */
const MOST = 1 << 20;

/** The credit of a sender, which sends only as many items as its reader granted. */
export class Outlet {
  #credit = 0;

  /** Number of items that may be sent. */
  get credit(): number {
    return this.#credit;
  }

  /** Adds credit granted by the reader, up to the maximum. */
  grant(credit: number): void {
    this.#credit = Math.min(MOST, this.#credit + credit);
  }

  /** Uses credit for one item. Returns `false` if there is none. */
  send(): boolean {
    if (this.#credit === 0) return false;
    this.#credit -= 1;
    return true;
  }
}

/** The credit of a reader with a window. */
export class Inlet {
  /** The initial credit. */
  readonly first: number;
  readonly #half: number;
  #taken = 0;

  constructor(window: number) {
    this.first = Math.min(MOST, Math.max(1, Math.floor(window)));
    this.#half = Math.ceil(this.first / 2);
  }

  /**
   * Counts an item that was taken. Returns the credit to grant now, in batches of half a window.
   */
  take(): number {
    this.#taken += 1;
    if (this.#taken < this.#half) return 0;
    const granted = this.#taken;
    this.#taken = 0;
    return granted;
  }
}
