import { HEADER, KIND_OCTETS, CONTENT_OCTETS, type Frame } from "../frame.js";

/** Number of bytes to allocate at a time. */
const SLAB = 64 * 1024;
/** Maximum length of text that is faster to convert by hand. */
const SHORT = 48;
const utf8 = new TextEncoder();

/** The fields of a frame before its payload. */
export interface Header {
  readonly kind: Frame["kind"];
  readonly id: number;
  readonly target: number;
  readonly deadline: number;
  readonly credit: number;
}

/** A buffer of encoded frames, which are taken all at once. */
export class FrameWriter {
  #slab = new Uint8Array(SLAB);
  #begin = 0;
  #end = 0;

  get isEmpty(): boolean {
    return this.#begin === this.#end;
  }

  /** Writes a frame. Returns `false`, and writes nothing, if its payload is longer than `limit`. */
  write(
    header: Header,
    content: Frame["content"],
    payload: string | Uint8Array | undefined,
    limit: number,
  ): boolean {
    // A UTF-16 code unit takes at most three bytes in UTF-8.
    const most = payload === undefined ? 0 : payload.length * 3;
    this.#reserve(HEADER + most);
    const at = this.#end;
    const length = payload === undefined ? 0 : this.#payload(payload, at + HEADER);
    if (length > limit) return false;
    const slab = this.#slab;
    put(slab, at, length);
    slab[at + 4] = KIND_OCTETS[header.kind];
    slab[at + 5] = CONTENT_OCTETS[content];
    slab[at + 6] = 0;
    slab[at + 7] = 0;
    put(slab, at + 8, header.id);
    put(slab, at + 12, header.target);
    put(slab, at + 16, header.deadline);
    put(slab, at + 20, header.credit);
    this.#end = at + HEADER + length;
    return true;
  }

  /** Takes the written frames, whose memory is not written to again. */
  take(): Uint8Array {
    const taken = this.#slab.subarray(this.#begin, this.#end);
    this.#begin = this.#end;
    return taken;
  }

  #reserve(length: number): void {
    if (this.#slab.length - this.#end >= length) return;
    const kept = this.#slab.subarray(this.#begin, this.#end);
    const slab = new Uint8Array(Math.max(SLAB, kept.length * 2, kept.length + length));
    slab.set(kept);
    this.#slab = slab;
    this.#end = kept.length;
    this.#begin = 0;
  }

  #payload(payload: string | Uint8Array, at: number): number {
    const slab = this.#slab;
    if (typeof payload !== "string") {
      slab.set(payload, at);
      return payload.length;
    }
    if (payload.length <= SHORT) {
      let n = 0;
      for (; n < payload.length; n += 1) {
        const code = payload.charCodeAt(n);
        if (code > 0x7f) break;
        slab[at + n] = code;
      }
      if (n === payload.length) return n;
    }
    return utf8.encodeInto(payload, slab.subarray(at)).written;
  }
}

function put(slab: Uint8Array, at: number, value: number): void {
  slab[at] = value >>> 24;
  slab[at + 1] = value >>> 16;
  slab[at + 2] = value >>> 8;
  slab[at + 3] = value;
}

const strict = new TextDecoder("utf-8", { fatal: true });

/** Decodes UTF-8; throws if it is invalid. */
export function textOf(octets: Uint8Array): string {
  if (octets.length > SHORT) return strict.decode(octets);
  let text = "";
  for (const octet of octets) {
    if (octet > 0x7f) return strict.decode(octets);
    text += String.fromCharCode(octet);
  }
  return text;
}
