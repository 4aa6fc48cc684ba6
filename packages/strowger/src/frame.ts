import { MessageError } from "./error.js";

/** Kinds of frames; their octets are the places in this list, from 1. */
const KINDS = ["hello", "name", "call", "item", "done", "error", "cancel", "credit"] as const;
const VERSION_2 = [...KINDS, "tell"] as const;
const CONTENTS = ["none", "json", "text", "octets"] as const;

/** Octets before the payload. */
export const HEADER = 24;

/** One frame of a connection; `docs/messages.md` says what each field is. */
export interface Frame {
  readonly kind: (typeof VERSION_2)[number];
  readonly content: (typeof CONTENTS)[number];
  readonly id: number;
  readonly target: number;
  /** Milliseconds. */
  readonly deadline: number;
  readonly credit: number;
  readonly payload: Uint8Array;
}

/**
 * Writes a frame.
 *
 * @example
 * encodeFrame({ kind: "cancel", content: "none", id: 7, target: 0, deadline: 0, credit: 0,
 *   payload: new Uint8Array() }).length; // 24
 */
export function encodeFrame(frame: Frame): Uint8Array {
  const { payload } = frame;
  const octets = new Uint8Array(HEADER + payload.length);
  const view = new DataView(octets.buffer);
  view.setUint32(0, payload.length);
  view.setUint8(4, VERSION_2.indexOf(frame.kind) + 1);
  view.setUint8(5, CONTENTS.indexOf(frame.content));
  view.setUint32(8, frame.id);
  view.setUint32(12, frame.target);
  view.setUint32(16, frame.deadline);
  view.setUint32(20, frame.credit);
  octets.set(payload, HEADER);
  return octets;
}

/** What {@link FrameDecoder} is told. */
export interface FrameDecoderOptions {
  /** Octets that a payload may have. */
  readonly limit: number;
  /** The version of the protocol, 1 or 2. */
  readonly protocol: 1 | 2;
}

/**
 * Makes frames of octets as they come.
 *
 * After an error there are no frames any more: each call throws the same error again.
 *
 * @example
 * const decoder = new FrameDecoder({ limit: 1024, protocol: 1 });
 * for (const frame of decoder.feed(octets)) handle(frame);
 */
export class FrameDecoder {
  readonly #limit: number;
  readonly #kinds: readonly Frame["kind"][];
  #rest = new Uint8Array();
  #broken: MessageError | undefined;

  constructor(options: FrameDecoderOptions) {
    this.#limit = options.limit;
    this.#kinds = options.protocol === 1 ? KINDS : VERSION_2;
  }

  /**
   * Takes octets in and returns the frames that are complete.
   *
   * @throws MessageError `protocol` if they are no frames; the ones before are lost with it.
   */
  feed(octets: Uint8Array): Frame[] {
    if (this.#broken !== undefined) throw this.#broken;
    const all = this.#rest.length === 0 ? octets : joined(this.#rest, octets);
    const frames: Frame[] = [];
    let at = 0;
    while (all.length - at >= HEADER) {
      const frame = this.#parse(all, at);
      if (frame === undefined) break;
      frames.push(frame);
      at += HEADER + frame.payload.length;
    }
    this.#rest = all.slice(at);
    return frames;
  }

  /**
   * Checks that the stream may end here.
   *
   * @throws MessageError `protocol` if it ends inside a frame.
   */
  finish(): void {
    if (this.#broken !== undefined) throw this.#broken;
    const have = this.#rest.length;
    if (have > 0) throw this.#break(`the stream ended ${have} octets into a frame`);
  }

  #parse(all: Uint8Array, at: number): Frame | undefined {
    const view = new DataView(all.buffer, all.byteOffset + at, HEADER);
    const length = view.getUint32(0);
    const kind = this.#kinds[view.getUint8(4) - 1];
    const content = CONTENTS[view.getUint8(5)];
    if (kind === undefined) throw this.#break(`unknown kind ${view.getUint8(4)}`);
    if (content === undefined) throw this.#break(`unknown content ${view.getUint8(5)}`);
    if (view.getUint16(6) !== 0) throw this.#break(`unknown flags ${view.getUint16(6)}`);
    if (length > this.#limit) {
      throw this.#break(`payload of ${length} octets, the limit is ${this.#limit}`);
    }
    if (content === "none" && length > 0) {
      throw this.#break(`payload of ${length} octets without a content type`);
    }
    if (all.length - at < HEADER + length) return undefined;
    return {
      kind,
      content,
      id: view.getUint32(8),
      target: view.getUint32(12),
      deadline: view.getUint32(16),
      credit: view.getUint32(20),
      payload: all.slice(at + HEADER, at + HEADER + length),
    };
  }

  #break(what: string): MessageError {
    this.#rest = new Uint8Array();
    this.#broken = new MessageError("protocol", what);
    return this.#broken;
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
