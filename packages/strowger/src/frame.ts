import { MessageError } from "./error.js";

/** The kinds of frames. The byte of a kind is its position in this list, counted from 1. */
const KINDS = ["hello", "name", "call", "item", "done", "error", "cancel", "credit"] as const;
const VERSION_2 = [...KINDS, "tell", "token"] as const;
const CONTENTS = ["none", "json", "text", "bytes"] as const;

/** The byte of each kind. */
export const KIND_OCTETS = {
  hello: 1,
  name: 2,
  call: 3,
  item: 4,
  done: 5,
  error: 6,
  cancel: 7,
  credit: 8,
  tell: 9,
  token: 10,
} as const satisfies Record<Frame["kind"], number>;

/** The byte of each content type. */
export const CONTENT_OCTETS = {
  none: 0,
  json: 1,
  text: 2,
  bytes: 3,
} as const satisfies Record<Frame["content"], number>;

/** Size in bytes of the header before the payload. */
export const HEADER = 24;

/** A frame of a connection; `docs/messages.md` describes the fields. */
export interface Frame {
  readonly kind: (typeof VERSION_2)[number];
  readonly content: (typeof CONTENTS)[number];
  readonly id: number;
  readonly target: number;
  /** Deadline in milliseconds. */
  readonly deadline: number;
  readonly credit: number;
  readonly payload: Uint8Array;
}

/**
 * Encodes a frame.
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
  view.setUint8(4, KIND_OCTETS[frame.kind]);
  view.setUint8(5, CONTENT_OCTETS[frame.content]);
  view.setUint32(8, frame.id);
  view.setUint32(12, frame.target);
  view.setUint32(16, frame.deadline);
  view.setUint32(20, frame.credit);
  octets.set(payload, HEADER);
  return octets;
}

/** Options of a {@link FrameDecoder}. */
export interface FrameDecoderOptions {
  /** Maximum length of a payload in bytes. */
  readonly limit: number;
  /** The protocol version, 1 or 2. */
  readonly protocol: 1 | 2;
}

/**
 * A decoder of frames from a stream of bytes.
 *
 * An error is final: each later call throws the same error.
 *
 * @example
 * const decoder = new FrameDecoder({ limit: 1024, protocol: 1 });
 * for (const frame of decoder.feed(octets)) handle(frame);
 */
export class FrameDecoder {
  readonly #limit: number;
  readonly #kinds: readonly Frame["kind"][];
  /** The beginning of a frame: `#have` bytes, with room for more. */
  #rest = EMPTY;
  #have = 0;
  #broken: MessageError | undefined;

  constructor(options: FrameDecoderOptions) {
    this.#limit = options.limit;
    this.#kinds = options.protocol === 1 ? KINDS : VERSION_2;
  }

  /**
   * Takes bytes and returns the frames that are complete. Payloads may share the memory of the
   * bytes, which must not be modified afterwards.
   *
   * @throws MessageError `protocol` if the bytes are not valid frames; frames before the error are
   * discarded.
   */
  feed(octets: Uint8Array): Frame[] {
    if (this.#broken !== undefined) throw this.#broken;
    const all = this.#have === 0 ? octets : this.#append(octets);
    const frames: Frame[] = [];
    let at = 0;
    while (all.length - at >= HEADER) {
      const frame = this.#parse(all, at);
      if (frame === undefined) break;
      frames.push(frame);
      at += HEADER + frame.payload.length;
    }
    const left = all.length - at;
    if (left === 0) this.#rest = EMPTY;
    else if (at > 0 || this.#have === 0) this.#rest = all.slice(at);
    this.#have = left;
    return frames;
  }

  /**
   * Checks that the stream may end here.
   *
   * @throws MessageError `protocol` if it ends inside a frame.
   */
  finish(): void {
    if (this.#broken !== undefined) throw this.#broken;
    const have = this.#have;
    if (have > 0) throw this.#break(`the stream ended ${have} octets into a frame`);
  }

  /**
   * Appends bytes to the rest. Its buffer doubles in size, so that each byte is copied only rarely.
   */
  #append(octets: Uint8Array): Uint8Array {
    const have = this.#have + octets.length;
    if (have > this.#rest.length) {
      const room = new Uint8Array(Math.max(have, this.#rest.length * 2));
      room.set(this.#rest.subarray(0, this.#have));
      this.#rest = room;
    }
    this.#rest.set(octets, this.#have);
    this.#have = have;
    return this.#rest.subarray(0, have);
  }

  #parse(all: Uint8Array, at: number): Frame | undefined {
    const length = uint32(all, at);
    const kind = this.#kinds[(all[at + 4] ?? 0) - 1];
    const content = CONTENTS[all[at + 5] ?? 0];
    if (kind === undefined) throw this.#break(`unknown kind ${all[at + 4]}`);
    if (content === undefined) throw this.#break(`unknown content ${all[at + 5]}`);
    const flags = uint32(all, at + 4) & 0xffff;
    if (flags !== 0) throw this.#break(`unknown flags ${flags}`);
    if (length > this.#limit) {
      throw this.#break(`payload of ${length} octets, the limit is ${this.#limit}`);
    }
    if (content === "none" && length > 0) {
      throw this.#break(`payload of ${length} octets without a content type`);
    }
    const end = at + HEADER + length;
    if (all.length < end) return undefined;
    return {
      kind,
      content,
      id: uint32(all, at + 8),
      target: uint32(all, at + 12),
      deadline: uint32(all, at + 16),
      credit: uint32(all, at + 20),
      payload: length === 0 ? EMPTY : all.subarray(at + HEADER, end),
    };
  }

  #break(what: string): MessageError {
    this.#rest = EMPTY;
    this.#have = 0;
    this.#broken = new MessageError("protocol", what);
    return this.#broken;
  }
}

const EMPTY = new Uint8Array();

function uint32(octets: Uint8Array, at: number): number {
  const high = ((octets[at] ?? 0) << 8) | (octets[at + 1] ?? 0);
  const low = ((octets[at + 2] ?? 0) << 8) | (octets[at + 3] ?? 0);
  return ((high << 16) | low) >>> 0;
}
