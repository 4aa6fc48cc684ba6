import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

import { Connection } from "../client/connection.js";
import { over, type RemoteNode } from "../client/node.js";
import type { StartedNode, StartOptions } from "../client/start.js";
import { systemClock } from "../clock.js";
import { isRecord, MessageError } from "../error.js";
import { checkDeadline, checkPause, LONGEST_TIMER } from "../span.js";
import { callSafely } from "../thenable.js";
import { errorsTo } from "../topic.js";
import { Troubles } from "../trouble.js";
import { findBinary } from "./binary.js";
import { dial } from "./node.js";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Number of log lines to repeat in an error. */
const LAST = 10;

/** Starts a node and connects to it. */
export async function start(options: StartOptions): Promise<StartedNode> {
  checkDeadline("readyMs", options.readyMs, LONGEST_TIMER);
  checkPause("shutdownMs", options.shutdownMs, LONGEST_TIMER);
  const env = options.env ?? process.env;
  const binary = options.binary ?? findBinary(env);
  const folder = mkdtempSync(join(tmpdir(), "strowger-"));
  const socket = options.socket ?? join(folder, "gateway");
  const doors = ["--control", join(folder, "control"), "--gateway", socket];
  const args = ["run", "--json", "--with-parent", ...doors, ...(options.args ?? [])];
  const child = spawn(binary, args, { env: { ...env }, stdio: ["pipe", "pipe", "pipe"] });
  const life = new Life(child, folder, options.shutdownMs ?? 10_000);
  const troubles = new Troubles();
  const log = follow(child, options.log, errorsTo(troubles.reporter("log")));
  try {
    const announcement = await ready(child, life, log, options.readyMs ?? 10_000);
    if (typeof announcement["gateway"] !== "string") {
      throw new MessageError("protocol", `${binary} reports no gateway: it is too old`);
    }
    const around = { dial, clock: systemClock, random: Math.random };
    const place = { kind: "unix", path: socket } as const;
    const connection = new Connection(place, options.connect ?? {}, around);
    const node = await over(connection, troubles);
    if (options.socket === undefined) {
      // No other process knows the socket, so no node can come back there: nothing to reconnect to,
      // and no reason to keep this process alive.
      void life.exited.then((how) => {
        connection.close(new MessageError("unreachable", `the node ended with ${how}`));
      });
    }
    return started(node, child, life, { binary, socket, announcement });
  } catch (thrown) {
    await life.stop();
    throw thrown;
  }
}

function started(
  node: RemoteNode,
  child: Child,
  life: Life,
  facts: Pick<StartedNode, "binary" | "socket" | "announcement">,
): StartedNode {
  const stop = async (): Promise<number | string> => {
    node.close();
    return life.stop();
  };
  return {
    get state() {
      return node.state;
    },
    control: node.control,
    actor: (at) => node.actor(at),
    topic: (name) => node.topic(name),
    troubles: node.troubles,
    opened: () => node.opened(),
    close: () => node.close(),
    pid: child.pid ?? 0,
    ...facts,
    exited: life.exited,
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
    },
  };
}

/** The child process, from its start to its exit. */
class Life {
  readonly exited: Promise<number | string>;
  /** The reason why the process could not be started. */
  fault: string | undefined;
  readonly #child: Child;
  readonly #graceMs: number;
  #isOver = false;

  constructor(child: Child, folder: string, graceMs: number) {
    this.#child = child;
    this.#graceMs = graceMs;
    // The standard input of the child closes with this process, however that ends; this handler is
    // for an orderly exit.
    const end = (): void => void child.kill("SIGTERM");
    process.once("exit", end);
    this.exited = new Promise((resolve) => {
      const over = (how: number | string): void => {
        this.#isOver = true;
        process.off("exit", end);
        rmSync(folder, { recursive: true, force: true });
        resolve(how);
      };
      child.once("error", (error) => {
        this.fault = error.message;
        if (child.pid === undefined) over(error.message);
      });
      // On `close`, not on `exit`: by then the last output has been read.
      child.once("close", (code, signal) => over(code ?? signal ?? "unknown"));
    });
    // A write to a child that has exited is not an error of this program.
    child.stdin.on("error", () => {});
  }

  async stop(): Promise<number | string> {
    if (this.#isOver) return this.exited;
    this.#child.kill("SIGTERM");
    const late = setTimeout(() => this.#child.kill("SIGKILL"), this.#graceMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(late);
    }
  }
}

/** Forwards the log, and keeps its last lines. */
function follow(
  child: Child,
  log: StartOptions["log"],
  caught: (error: unknown) => void,
): string[] {
  const last: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    last.push(line);
    if (last.length > LAST) last.shift();
    if (log === undefined) process.stderr.write(`${line}\n`);
    else callSafely(caught, log, line);
  });
  return last;
}

/** Waits for the line that announces that the node is ready. */
function ready(
  child: Child,
  life: Life,
  log: readonly string[],
  withinMs: number,
): Promise<Readonly<Record<string, unknown>>> {
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      reject(new MessageError("deadline", `the node was not ready within ${withinMs} ms`));
    }, withinMs);
    lines.once("line", (line) => {
      clearTimeout(late);
      const said = parsed(line);
      const text = `unexpected first line from the node: ${JSON.stringify(line)}`;
      if (said !== undefined) resolve(said);
      else reject(new MessageError("protocol", text));
    });
    void life.exited.then((how) => {
      clearTimeout(late);
      const why = life.fault ?? [`it ended with ${how}`, ...log].join("\n");
      reject(new MessageError("failed", `the node did not start: ${why}`));
    });
  });
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
