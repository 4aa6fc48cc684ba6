/// <reference lib="esnext.disposable" preserve="true" />
import { address, type Address, parseAddress } from "../address.js";
import { systemClock } from "../clock.js";
import { MessageError } from "../error.js";
import type {
  ActorRef,
  AnyProtocol,
  AskOptions,
  Protocol,
  StreamOptions,
  TellOptions,
} from "../protocol.js";
import { notDeadline } from "../span.js";
import type { Topic } from "../topic.js";
import { type Trouble, Troubles } from "../trouble.js";
import { Connection, type ConnectionState, type ConnectOptions } from "./connection.js";
import { parsePlace } from "./line.js";
import { Name } from "./name.js";
import { Call, RemoteStream } from "./outgoing.js";
import { remoteTopic, type RemoteTopic } from "./topic.js";

/** A running node and its actors. */
export interface RemoteNode {
  /** The state of the connection. */
  readonly state: ConnectionState;
  /**
   * The methods of the node itself, such as `ping`, `ps` and `tree`, if the endpoint offers them
   * (`gateway.control`).
   */
  readonly control: ActorRef<AnyProtocol>;
  /**
   * Returns a reference to the actor at a path or an address, without checking that it exists.
   *
   * @throws MessageError `bad-request` if the path is invalid.
   */
  actor<P extends Protocol<P> = AnyProtocol>(at: string): ActorRef<P>;
  /** Returns the topic of this name in the node. The caller and the node have to agree on `T`. */
  topic<T>(name: string): RemoteTopic<T>;
  /** Publishes errors of this process's listeners to topics of the node. */
  readonly troubles: Topic<Trouble>;
  /** Resolves once the connection is open; rejects when it is closed for good. */
  opened(): Promise<void>;
  /** Fails everything that is pending with `cancelled`, does not reconnect, and ends `troubles`. */
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Connects to a running node: the path of its socket, `tcp://HOST:PORT` or `ws://HOST:PORT`.
 *
 * If the connection is lost, pending calls and streams fail with `lost`, or with `unreachable` if
 * they had not been sent. The client reconnects until it succeeds.
 *
 * @example
 * const node = await connect("/run/strowger/gateway.sock");
 * await node.actor<Counter>("counter").ask("add", 2);
 *
 * @throws MessageError if no node listens there; `bad-request` if a time in the options is invalid.
 */
export async function connect(where: string, options: ConnectOptions = {}): Promise<RemoteNode> {
  const place = parsePlace(where);
  const { dial } = await import("#adapter");
  const around = { dial, clock: systemClock, random: Math.random };
  return over(new Connection(place, options, around));
}

/** Creates a node from a connection, once it is open. */
export async function over(
  connection: Connection,
  troubles = new Troubles(),
): Promise<RemoteNode> {
  await connection.begin();
  const close = (): void => {
    connection.close(new MessageError("cancelled", "the client was closed"));
    troubles.topic.close();
  };
  return {
    get state() {
      return connection.state;
    },
    control: typed<AnyProtocol>(new RemoteActor(connection, undefined)),
    actor: <P extends Protocol<P>>(at: string) => {
      const known = at.startsWith("@(") ? parseAddress(at).address : address(at);
      return typed<P>(new RemoteActor(connection, known));
    },
    topic: <T>(name: string) => {
      const actor = new RemoteActor(connection, address(`topic/${name}`));
      return remoteTopic<T>(actor, connection, troubles.reporter(name));
    },
    troubles: troubles.topic,
    opened: () => connection.opened(),
    close,
    [Symbol.asyncDispose]: () => {
      close();
      return Promise.resolve();
    },
  };
}

// Restores the types of a protocol: the name of a message determines them, and the values received
// are trusted to match.
function typed<P>(actor: RemoteActor): ActorRef<P>;
function typed(actor: unknown): unknown {
  return actor;
}

/** An actor in a node; without an address, the methods of the node itself. */
export class RemoteActor {
  readonly #connection: Connection;
  readonly #address: Address | undefined;
  readonly #names = new Map<string, Name>();

  constructor(connection: Connection, at: Address | undefined) {
    this.#connection = connection;
    this.#address = at;
  }

  get address(): Address {
    return this.#address ?? "@(control)";
  }

  tell(type: string, payload?: unknown, options?: TellOptions): Promise<void> {
    const told = this.#call("tell", type, payload, this.#connection.deadlineMs, options?.signal);
    // As in process: a rejection that is not handled is not an error of the program.
    const queued = told.then(nothing);
    queued.catch(nothing);
    return queued;
  }

  ask(type: string, payload?: unknown, options?: AskOptions): Promise<unknown> {
    const deadlineMs = options?.deadlineMs ?? this.#connection.deadlineMs;
    return this.#call("call", type, payload, deadlineMs, options?.signal);
  }

  stream(type: string, payload?: unknown, options?: StreamOptions): RemoteStream {
    const wrong = notDeadline("deadlineMs", options?.deadlineMs);
    const stream = new RemoteStream(this.#name(type), payload, options, this.#connection.wheel);
    if (wrong !== undefined) stream.fail(wrong);
    this.#submit(stream);
    return stream;
  }

  #call(
    kind: "call" | "tell",
    type: string,
    payload: unknown,
    deadlineMs: number,
    signal: AskOptions["signal"],
  ): Promise<unknown> {
    const { wheel } = this.#connection;
    const call = new Call(kind, this.#name(type), payload, deadlineMs, wheel);
    const wrong = notDeadline("deadlineMs", deadlineMs);
    if (wrong !== undefined) call.fail(wrong);
    if (signal !== undefined && !call.isOver) call.listen(signal);
    this.#submit(call);
    return call.promise;
  }

  #submit(call: Call | RemoteStream): void {
    if (call.isOver) return;
    if (call.name.fault !== undefined) {
      call.fail(call.name.fault);
      return;
    }
    const { protocol } = this.#connection;
    if (this.#address !== undefined && protocol === 1) {
      const text = "the node speaks version 1 here, which has no actors: use the socket of its"
        + " gateway";
      call.fail(new MessageError("protocol", text));
      return;
    }
    this.#connection.submit(call);
  }

  #name(type: string): Name {
    let name = this.#names.get(type);
    if (name === undefined) {
      name = new Name(this.#address, type);
      // Programs use few types. Clearing the cache bounds it for a program that makes up types.
      if (this.#names.size >= NAMES) this.#names.clear();
      this.#names.set(type, name);
    }
    return name;
  }
}

const NAMES = 1024;

function nothing(): void {}
