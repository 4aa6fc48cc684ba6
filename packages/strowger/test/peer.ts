import { Connection, type ConnectOptions, type Surroundings } from "../src/client/connection.js";
import type { Dial, Line, LineEvents } from "../src/client/line.js";
import { over, type RemoteNode } from "../src/client/node.js";
import { encodeFrame, type Frame, FrameDecoder } from "../src/frame.js";
import { MessageError } from "../src/index.js";
import { VirtualClock } from "../src/testing.js";

type Sent = Partial<Omit<Frame, "payload" | "content">> & {
  readonly kind: Frame["kind"];
  readonly json?: unknown;
  readonly octets?: Uint8Array;
};

const utf8 = new TextEncoder();

function octetsOf(sent: Sent): Uint8Array {
  const { kind, id = 0, target = 0, deadline = 0, credit = 0, json, octets } = sent;
  const header = { kind, id, target, deadline, credit };
  if (octets !== undefined) return encodeFrame({ ...header, content: "bytes", payload: octets });
  if (json === undefined) {
    return encodeFrame({ ...header, content: "none", payload: new Uint8Array() });
  }
  const payload = utf8.encode(JSON.stringify(json));
  return encodeFrame({ ...header, content: "json", payload });
}

/** A connection as seen by the node. */
export class PeerLine implements Line {
  readonly frames: Frame[] = [];
  /** Number of times that bytes arrived. */
  batches = 0;
  isClosed = false;
  /** `true` if the line asks the client to hold back. */
  isFull = false;
  readonly #events: LineEvents;
  readonly #decoder = new FrameDecoder({ limit: 1 << 24, protocol: 2 });
  readonly #serve: Serve;

  constructor(events: LineEvents, serve: Serve) {
    this.#events = events;
    this.#serve = serve;
  }

  send(octets: Uint8Array): boolean {
    this.batches += 1;
    for (const frame of this.#decoder.feed(octets)) {
      this.frames.push(frame);
      this.#serve(frame, this);
    }
    return !this.isFull;
  }

  soon(callback: () => void): void {
    queueMicrotask(callback);
  }

  close(): void {
    this.isClosed = true;
  }

  /** Sends frames to the client, in one piece. */
  say(...sent: Sent[]): void {
    const pieces = sent.map(octetsOf);
    const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of pieces) {
      all.set(piece, at);
      at += piece.length;
    }
    this.#events.octets(all);
  }

  raw(octets: Uint8Array): void {
    this.#events.octets(octets);
  }

  drain(): void {
    this.isFull = false;
    this.#events.drained();
  }

  lose(): void {
    this.#events.lost("the cable was cut");
  }

  /** Returns the received frames of a kind, with their payloads as text. */
  all(kind: Frame["kind"]): readonly { readonly frame: Frame; readonly text: string }[] {
    const decoder = new TextDecoder();
    return this.frames
      .filter((frame) => frame.kind === kind)
      .map((frame) => ({ frame, text: decoder.decode(frame.payload) }));
  }
}

export type Serve = (frame: Frame, line: PeerLine) => void;

/** Answers calls with their own payload, and acknowledges tells. */
export const echo: Serve = (frame, line) => {
  if (frame.kind === "tell") line.say({ kind: "done", id: frame.id });
  if (frame.kind !== "call") return;
  const text = new TextDecoder().decode(frame.payload);
  const json: unknown = text === "" ? undefined : JSON.parse(text);
  line.say({ kind: "done", id: frame.id, json });
};

export const silent: Serve = () => {};

/** A scripted node on a line without a network. */
export class Peer {
  readonly clock = new VirtualClock();
  readonly lines: PeerLine[] = [];
  hello: unknown = { protocol: 2, frame: 1024, in_flight: 8 };
  /** `true` if connections are refused. */
  isDown = false;
  serve: Serve;

  constructor(serve: Serve) {
    this.serve = serve;
  }

  /** The newest line. */
  get line(): PeerLine {
    const line = this.lines.at(-1);
    if (line === undefined) throw new Error("nobody has connected");
    return line;
  }

  readonly dial: Dial = (_place, events) => {
    if (this.isDown) {
      return Promise.reject(new MessageError("unreachable", "nobody listens"));
    }
    const line = new PeerLine(events, (frame, at) => this.serve(frame, at));
    this.lines.push(line);
    const { hello } = this;
    if (hello !== undefined) queueMicrotask(() => line.say({ kind: "hello", json: hello }));
    return Promise.resolve(line);
  };

  connect(options: ConnectOptions = {}, around: Partial<Surroundings> = {}): Promise<RemoteNode> {
    const world = { dial: this.dial, clock: this.clock, random: () => 1, ...around };
    return over(new Connection({ kind: "unix", path: "/peer" }, options, world));
  }
}
