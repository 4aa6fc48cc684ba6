import type { Cell } from "./actor.js";
import { forgetful } from "./actor.js";
import { type Address, parseAddress, pathOf } from "./address.js";
import { asMessageError, badRequest, type MessageError } from "./error.js";
import { refused } from "./mailbox.js";
import { createErrorResponse, createResponse, type Message } from "./message.js";
import type { AnyProtocol, Call, Exit, SpawnOptions } from "./protocol.js";
import type { Shared } from "./shared.js";

/** Handles messages of any type in their envelopes, and returns the answer. */
export type MessageHandler = (message: Message, call: Call) => unknown;

/** Routes messages in envelopes to actors by address. */
export class Router {
  readonly #shared: Shared;

  /** @internal */
  constructor(shared: Shared) {
    this.#shared = shared;
  }

  /**
   * Starts an actor that receives whole envelopes. Returns a function that stops it.
   *
   * @throws MessageError `refused` if there is already an actor at the address.
   */
  register(at: Address, handler: MessageHandler, options: SpawnOptions = {}): () => Promise<Exit> {
    const make = forgetful<AnyProtocol>(() => ({
      handle: {},
      otherwise: (_payload, call) => {
        if (call.message === undefined) throw badRequest(`${at} takes messages in envelopes`);
        return handler(call.message, call);
      },
    }));
    const cell = this.#shared.spawn(pathOf(at), make, options, undefined);
    return () => cell.stop();
  }

  /**
   * Queues a message; resolves once it is queued. As with a reference, a rejection does not have to
   * be handled.
   */
  tell(message: Message): Promise<void> {
    try {
      const cell = this.#find(message);
      if (!(cell instanceof Error)) return cell.tellWith(message);
      this.#shared.deadAt(message.to, message.type, message.payload, cell.code);
      return refused(cell);
    } catch (thrown) {
      return refused(asMessageError(thrown));
    }
  }

  /**
   * Sends a message and resolves with its answer in an envelope. Errors are returned in the
   * envelope as well.
   *
   * The message needs a `from`, to which the answer is addressed.
   */
  async ask(message: Message, options: { readonly signal?: AbortSignal } = {}): Promise<Message> {
    if (message.from === undefined) throw badRequest(`message ${message.id} has no sender`);
    try {
      const cell = this.#find(message);
      if (cell instanceof Error) throw cell;
      const { deadlineMs } = message;
      const how = deadlineMs === undefined ? options : { ...options, deadlineMs };
      const answer = await cell.askWith(message.type, message.payload, how, message);
      return createResponse(message, answer);
    } catch (thrown) {
      return createErrorResponse(message, asMessageError(thrown));
    }
  }

  /** Sends a message and returns the stream of its items. */
  stream(
    message: Message,
    options: { readonly signal?: AbortSignal; readonly window?: number } = {},
  ): AsyncIterableIterator<unknown> {
    const cell = this.#find(message);
    if (cell instanceof Error) throw cell;
    const { deadlineMs } = message;
    const how = deadlineMs === undefined ? options : { ...options, deadlineMs };
    return cell.streamWith(message.type, message.payload, how, message);
  }

  #find(message: Message): Cell | MessageError {
    const { path } = parseAddress(message.to);
    return this.#shared.cells.get(path) ?? this.#shared.nobody(path);
  }
}
