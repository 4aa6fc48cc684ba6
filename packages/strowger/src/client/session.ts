import {
  asMessageError,
  badRequest,
  isRecord,
  MessageError,
  parseError,
  reasonOf,
} from "../error.js";
import { type Frame, FrameDecoder } from "../frame.js";
import type { Line, LineEvents } from "./line.js";
import { type Name, Names } from "./name.js";
import type { Outgoing } from "./outgoing.js";
import { FrameWriter, textOf } from "./writer.js";

/** Callbacks of a {@link Session}. */
export interface SessionEvents {
  /** Called when there is room for waiting calls. */
  room(): void;
  /** Called when the session has ended, after all pending calls have failed. */
  over(error: MessageError): void;
}

/** Maximum length in bytes of a payload from the node. */
const LONGEST = 16 << 20;
const LAST_ID = 0xffff_ffff;
const NAMES = 256;

/** The contents of a node's hello. */
interface Hello {
  readonly protocol: number;
  readonly frame: number;
  readonly inFlight: number;
  readonly names: number;
  readonly token: boolean;
}

/** The use of one line, from the hello to its end: pending calls and bound names. */
export class Session implements LineEvents {
  readonly #events: SessionEvents;
  readonly #token: string | undefined;
  readonly #decoder = new FrameDecoder({ limit: LONGEST, protocol: 2 });
  readonly #writer = new FrameWriter();
  readonly #pending = new Map<number, Outgoing>();
  readonly #opened: Promise<void>;
  #open!: () => void;
  #refuse!: (error: MessageError) => void;
  #line: Line | undefined;
  #hello: Hello | undefined;
  #names = new Names(this, NAMES);
  #lastId: number;
  /** The last id that was handed to the line. */
  #leftId = 0;
  #isCongested = false;
  #isFlushing = false;
  #hasAnswered = false;
  /** The id of the call whose answer shows that the node accepted the token. */
  #probe: number | undefined;
  #error: MessageError | undefined;

  /** `firstId` is 1, except in tests of the last id. */
  constructor(events: SessionEvents, token: string | undefined, firstId = 1) {
    this.#events = events;
    this.#token = token;
    this.#lastId = firstId - 1;
    this.#opened = new Promise((resolve, reject) => {
      this.#open = resolve;
      this.#refuse = reject;
    });
  }

  /** Resolves once the node has said hello and accepted the token, if it requires one. */
  async begin(dialling: Promise<Line>): Promise<void> {
    // A line that opens after the session has ended is closed.
    dialling.then(
      (line) => {
        if (this.#error === undefined) this.#start(line);
        else line.close();
      },
      (error: unknown) => this.end(asMessageError(error)),
    );
    await this.#opened;
  }

  /** The reason why the session has ended, if it has. */
  get error(): MessageError | undefined {
    return this.#error;
  }

  /** The protocol version of the node, or 0 before its hello. */
  get protocol(): number {
    return this.#hello?.protocol ?? 0;
  }

  /** `true` if a call can be sent now. */
  get hasRoom(): boolean {
    const most = this.#hello?.inFlight ?? 0;
    return this.#pending.size < most && !this.#isCongested && !this.isSpent;
  }

  /** `true` if there are no ids left, so that another session has to send further calls. */
  get isSpent(): boolean {
    return this.#lastId >= LAST_ID;
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** `true` if the node has answered a call in this session. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Sends a call; `hasRoom` must be `true`. */
  send(call: Outgoing, deadline: number): void {
    const { name, kind } = call;
    const [content, payload] = encoded(call);
    if (content === undefined) {
      call.fail(payload);
      return;
    }
    this.#bind(name);
    const id = this.#lastId + 1;
    const limit = this.#hello?.frame ?? 0;
    const { target } = name;
    const header = { kind, id, target, deadline, credit: call.window };
    if (!this.#writer.write(header, content, payload, limit)) {
      call.fail(badRequest(`the payload of ${name.type} is longer than the ${limit} octets that`
        + " the node takes"));
      return;
    }
    this.#lastId = id;
    this.#pending.set(id, call);
    call.sent = { session: this, id };
    this.#soon();
  }

  /** Tells the node that nobody waits for a call, which the node still answers. */
  cancel(id: number): void {
    if (this.#error === undefined && this.#pending.has(id)) this.#control("cancel", id, 0);
  }

  /** Grants credit for more items. */
  grant(id: number, credit: number): void {
    if (this.#error === undefined && this.#pending.has(id)) this.#control("credit", id, credit);
  }

  /** Ends the session at once. */
  end(error: MessageError): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.#line?.close();
    this.#refuse(error);
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const [id, call] of pending) call.fail(endOf(error, id <= this.#leftId));
    this.#events.over(error);
  }

  octets(octets: Uint8Array): void {
    if (this.#error !== undefined) return;
    try {
      for (const frame of this.#decoder.feed(octets)) this.#frame(frame);
    } catch (thrown) {
      this.end(asMessageError(thrown));
      return;
    }
    if (this.#error !== undefined) return;
    this.#events.room();
  }

  drained(): void {
    this.#isCongested = false;
    this.#soon();
    this.#events.room();
  }

  lost(why: string): void {
    this.end(new MessageError("lost", `${LOST}: ${why}`));
  }

  #start(line: Line): void {
    this.#line = line;
    if (this.#hello !== undefined) this.#greet(this.#hello);
  }

  #greet(hello: Hello): void {
    if (!hello.token) {
      this.#open();
      return;
    }
    if (this.#token === undefined) {
      this.end(new MessageError("refused", "the node requires a token, but none is set"));
      return;
    }
    // The node does not acknowledge a valid token. It does answer a call without a target, with an
    // error, once it has accepted the token.
    this.#lastId += 1;
    this.#probe = this.#lastId;
    const none = { target: 0, deadline: 0, credit: 0 };
    this.#writer.write({ kind: "token", id: 0, ...none }, "text", this.#token, LONGEST);
    this.#writer.write({ kind: "call", id: this.#probe, ...none }, "none", undefined, LONGEST);
    this.#soon();
  }

  #bind(name: Name): void {
    name.isUsed = true;
    if (name.session === this) return;
    this.#names.bind(name);
    const header = { kind: "name", id: 0, target: name.target, deadline: 0, credit: 0 } as const;
    this.#writer.write(header, "text", name.text, LONGEST);
  }

  #control(kind: "cancel" | "credit", id: number, credit: number): void {
    this.#writer.write({ kind, id, target: 0, deadline: 0, credit }, "none", undefined, 0);
    this.#soon();
  }

  #soon(): void {
    if (this.#isFlushing || this.#isCongested || this.#line === undefined) return;
    if (this.#writer.isEmpty) return;
    this.#isFlushing = true;
    this.#line.soon(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isFlushing = false;
    if (this.#error !== undefined || this.#line === undefined || this.#writer.isEmpty) return;
    this.#leftId = this.#lastId;
    this.#isCongested = !this.#line.send(this.#writer.take());
  };

  #frame(frame: Frame): void {
    if (this.#error !== undefined) return;
    const { kind, id } = frame;
    if (this.#hello === undefined && kind !== "error") {
      if (kind !== "hello") throw outOfTurn(`unexpected first frame from the node: ${kind}`);
      this.#hello = hello(valueOf(frame));
      this.#names = new Names(this, this.#hello.names);
      if (this.#line !== undefined) this.#greet(this.#hello);
      return;
    }
    if (kind === "error" && id === 0) {
      this.end(parseError(valueOf(frame)));
      return;
    }
    if (id === this.#probe && (kind === "error" || kind === "done")) {
      this.#probe = undefined;
      this.#open();
      return;
    }
    const call = this.#pending.get(id);
    if (call === undefined) throw outOfTurn(`${kind} of call ${id}, which is not pending`);
    switch (kind) {
      case "item":
        if (!call.item(valueOf(frame))) throw outOfTurn(`an item of call ${id} without credit`);
        return;
      case "done":
        this.#answered(id, call, valueOf(frame));
        return;
      case "error":
        this.#answered(id, call, parseError(valueOf(frame)));
        return;
      default:
        throw outOfTurn(`a node does not send ${kind}`);
    }
  }

  #answered(id: number, call: Outgoing, answer: unknown): void {
    this.#pending.delete(id);
    this.#hasAnswered = true;
    if (answer instanceof MessageError) call.fail(answer);
    else call.done(answer);
  }
}

type Encoded =
  | readonly [content: undefined, error: MessageError]
  | readonly [content: Frame["content"], payload: string | Uint8Array | undefined];

function encoded(call: Outgoing): Encoded {
  const { payload } = call;
  if (payload === undefined) return NOTHING;
  try {
    // Also the check may throw: a payload may be a proxy.
    if (payload instanceof Uint8Array) return ["bytes", payload];
    const text: string | undefined = JSON.stringify(payload);
    return text === undefined ? NOTHING : ["json", text];
  } catch (thrown) {
    const why = reasonOf(thrown);
    return [undefined, badRequest(`the payload of ${call.name.type} is no JSON: ${why}`)];
  }
}

const NOTHING = ["none", undefined] as const;

/** Decodes the payload of a frame; throws `protocol` if it does not match its content type. */
function valueOf(frame: Frame): unknown {
  const { payload } = frame;
  switch (frame.content) {
    case "none":
      return undefined;
    case "bytes":
      // A copy: a view of a few bytes would keep everything that was received with them in memory.
      return new Uint8Array(payload);
    case "json":
    case "text":
      try {
        const text = textOf(payload);
        return frame.content === "text" ? text : JSON.parse(text);
      } catch (thrown) {
        const why = reasonOf(thrown);
        throw outOfTurn(`the payload of ${frame.kind} is no ${frame.content}: ${why}`);
      }
  }
}

function hello(data: unknown): Hello {
  const fields = isRecord(data) ? data : {};
  const number = (name: string, otherwise: number): number => {
    const value = fields[name];
    return typeof value === "number" && value >= 1 ? Math.floor(value) : otherwise;
  };
  const protocol = number("protocol", 0);
  if (protocol === 0) throw outOfTurn("the hello of the node names no protocol");
  return {
    protocol,
    frame: number("frame", 1 << 20),
    inFlight: number("in_flight", 1),
    names: number("names", NAMES),
    token: fields["token"] === true,
  };
}

function outOfTurn(what: string): MessageError {
  return new MessageError("protocol", what);
}

const LOST = "the connection was lost";

/** Returns the error of a call whose connection has ended. */
function endOf(error: MessageError, hasLeft: boolean): MessageError {
  // This side closed the connection.
  if (error.code === "cancelled") return error;
  const why = error.code === "lost" ? error.message : `${LOST}: ${error.message}`;
  if (!hasLeft) {
    return new MessageError("unreachable", `${why}; the message was not sent`, { cause: error });
  }
  // The target may have handled the call: `lost` means that the outcome is unknown.
  return error.code === "lost" ? error : new MessageError("lost", why, { cause: error });
}
