import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { startNode } from "strowger";

import { check, type Row } from "./row.js";

type Echo = { echo: { payload: number; reply: number } };

/** Number of asks in flight at a time. */
const PIPELINED = 1000;
/** Size in bytes of an ask, and of its answer, in the frames of the protocol. */
const OCTETS = 28;

/** Measures asks to an actor in a node, and plain bytes to a process that echoes them. */
export async function client(row: (row: Row) => Promise<void>): Promise<void> {
  await using node = await startNode({ args: ["--port", "0", "--conformance"], log: () => {} });
  const actor = node.actor<Echo>("conformance/echo");
  const raw = await Raw.start();
  try {
    let n = 0;
    const asks = async (): Promise<void> => {
      n += 1;
      check((await actor.ask("echo", n)) === n, "client_ask");
    };
    const bare = async (): Promise<void> => {
      check((await raw.echo(1)) === OCTETS, "client_ask");
    };
    await row({
      id: "client_ask",
      tail: true,
      works: [
        ["strowger", { operations: 1, work: asks }],
        ["socket", { operations: 1, work: bare }],
      ],
    });
    const pipelined = async (): Promise<void> => {
      const asked: Promise<number>[] = [];
      for (let at = 0; at < PIPELINED; at += 1) asked.push(actor.ask("echo", at));
      const answers = await Promise.all(asked);
      check(answers.every((answer, at) => answer === at), "client_ask_pipelined");
    };
    const stuffed = async (): Promise<void> => {
      check((await raw.echo(PIPELINED)) === PIPELINED * OCTETS, "client_ask_pipelined");
    };
    await row({
      id: "client_ask_pipelined",
      works: [
        ["strowger", { operations: PIPELINED, work: pipelined }],
        ["socket", { operations: PIPELINED, work: stuffed }],
      ],
    });
  } finally {
    await raw.close();
  }
}

/** A process that echoes what it receives. */
class Raw {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #socket: Socket;
  readonly #question = new Uint8Array(OCTETS);
  #left = 0;
  #got = 0;
  #done: (octets: number) => void = () => {};

  private constructor(child: ChildProcess, folder: string, socket: Socket) {
    this.#child = child;
    this.#folder = folder;
    this.#socket = socket;
    socket.on("data", (octets) => {
      this.#got += octets.length;
      this.#left -= octets.length;
      if (this.#left === 0) this.#done(this.#got);
    });
  }

  static async start(): Promise<Raw> {
    const folder = mkdtempSync(join(tmpdir(), "strowger-"));
    const path = join(folder, "echo");
    const child = fork(fileURLToPath(new URL("echo.js", import.meta.url)), [path]);
    try {
      const ended = once(child, "exit").then(() => Promise.reject(new Error("the echo ended")));
      await Promise.race([once(child, "message"), ended]);
      const socket = connect(path);
      await once(socket, "connect");
      // Its end is no error any more.
      ended.catch(() => {});
      return new Raw(child, folder, socket);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  /**
   * Sends `questions` requests in separate writes, and waits until as many bytes have come back.
   */
  echo(questions: number): Promise<number> {
    return new Promise((resolve) => {
      [this.#left, this.#got, this.#done] = [questions * OCTETS, 0, resolve];
      this.#socket.cork();
      for (let n = 0; n < questions; n += 1) this.#socket.write(this.#question);
      this.#socket.uncork();
    });
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    this.#child.kill();
    await once(this.#child, "exit");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
