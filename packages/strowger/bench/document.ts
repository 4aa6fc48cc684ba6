import {
  ActorSystem,
  address,
  createErrorResponse,
  createMessage,
  createResponse,
  generateCorrelationId,
  generateMessageId,
  type Message,
  MessageError,
} from "strowger";

import { check, type Row } from "./row.js";
import type { Subject } from "./subjects.js";

type Work = () => unknown;

/**
 * Returns a row with only this library and the floor, because no other library has a counterpart.
 */
function ours(id: string, strowger: Work, floor: Work): Row {
  return {
    id,
    works: [
      ["strowger", { operations: 1, work: strowger }],
      ["floor", { operations: 1, work: floor }],
    ],
  };
}

const to = address("tools/files");
const from = address("client");
const init = { pattern: "tell", to, from, type: "add", payload: 1 } as const;
const metadata = { trace: "1", tenant: "a" };
const refusal = new MessageError("refused", "not today");
let made = 0;

function plain(more: object): { readonly id: string } {
  made += 1;
  return { id: `p-${made}`, ...init, ...more };
}

/** Rows for the cost of creating messages, ids and answers. */
export function creation(): Row[] {
  const question = createMessage({ ...init, pattern: "ask" });
  const many = (count: number, make: () => { readonly id: string }): Work => () => {
    let length = 0;
    for (let n = 0; n < count; n += 1) length += make().id.length;
    check(length > count, "each has an id");
  };
  const told = (): Message => createMessage(init);
  const bare = (): { readonly id: string } => plain({});
  const id = (): string => `p-${(made += 1)}`;
  return [
    ours(
      "create_metadata",
      () => check(createMessage({ ...init, metadata }).metadata === metadata, "metadata"),
      () => check(plain({ metadata }).id !== "", "metadata"),
    ),
    ours(
      "message_id",
      () => check(generateMessageId() !== "", "an id"),
      () => check(id() !== "", "an id"),
    ),
    ours(
      "correlation_id",
      () => check(generateCorrelationId() !== "", "an id"),
      () => check(id() !== "", "an id"),
    ),
    ours(
      "create_response",
      () => check(createResponse(question, 42).payload === 42, "a response"),
      () => check(plain({ payload: 42 }).id !== "", "a response"),
    ),
    ours(
      "create_error_response",
      () => check(createErrorResponse(question, refusal).error?.code === "refused", "an error"),
      () => check(plain({ error: { code: "refused" } }).id !== "", "an error"),
    ),
    ours("create_100", many(100, told), many(100, bare)),
    ours("create_1k", many(1000, told), many(1000, bare)),
  ];
}

/** Rows for the cost of routing messages in envelopes. */
export function routing(): { readonly rows: Row[]; readonly close: () => Promise<void> } {
  const system = new ActorSystem();
  const { router } = system;
  const sum = (n: unknown): number => {
    let all = 0;
    for (let each = 0; each < Number(n); each += 1) all += each;
    return all;
  };
  const programs = new Map<string, (message: Message) => unknown>([
    [address("echo"), (message) => message.payload],
    [address("noop"), () => undefined],
    [address("compute"), (message) => sum(message.payload)],
  ]);
  for (const name of ["echo", "noop", "compute"]) {
    const program = programs.get(address(name));
    if (program !== undefined) router.register(address(name), program);
  }
  const soon = Promise.resolve();
  const routers: Readonly<Record<string, (message: Message) => Promise<unknown>>> = {
    strowger: async (message) => (await router.ask(message)).payload,
    floor: async (message) => {
      await soon;
      return programs.get(message.to)?.(message);
    },
  };
  const row = (id: string, work: (ask: (n: number) => Promise<void>) => Work, at = "echo"): Row => {
    const target = address(at);
    const expected = { echo: (n: number) => n, noop: () => undefined, compute: sum }[at];
    const works = Object.entries(routers).map(([name, route]) => {
      const ask = async (payload: number): Promise<void> => {
        const question = { pattern: "ask", to: target, from, type: "run", payload } as const;
        check((await route(createMessage(question))) === expected?.(payload), id);
      };
      return [name, { operations: 1, work: work(ask) }] as const;
    });
    return { id, works };
  };
  const one = (ask: (n: number) => Promise<void>): Work => () => ask(10);
  const echo = address("echo");
  const told = ours(
    "route_tell",
    () => router.tell(createMessage({ ...init, to: echo })),
    () => {
      const message = createMessage({ ...init, to: echo });
      return soon.then(() => void programs.get(message.to)?.(message));
    },
  );
  const rows = [
    told,
    row("route_ask_echo", one),
    row("route_ask_noop", one, "noop"),
    row("route_ask_compute", one, "compute"),
    row("route_10_sequential", (ask) => async () => {
      for (let n = 0; n < 10; n += 1) await ask(n);
    }),
    row("route_10_concurrent", (ask) => async () => {
      await Promise.all(Array.from({ length: 10 }, (_, n) => ask(n)));
    }),
  ];
  return { rows, close: () => system.shutdown() };
}

/** Rows for the total cost of common patterns. */
export function patterns(subjects: readonly Subject[]): Row[] {
  const row = (id: string, work: (subject: Subject) => Work): Row => ({
    id,
    works: subjects.map((subject) => [subject.name, { operations: 1, work: work(subject) }]),
  });
  const told = (count: number) => (subject: Subject) => async () => {
    const before = await subject.ask();
    for (let n = 0; n < count; n += 1) subject.tell();
    check((await subject.ask()) === before + count + 1, "each is handled once");
  };
  const asks = async (subject: Subject, count: number): Promise<void> => {
    const asked: Promise<number>[] = [];
    for (let n = 0; n < count; n += 1) asked.push(subject.ask());
    const answers = await Promise.all(asked);
    check((answers[count - 1] ?? 0) - (answers[0] ?? 0) === count - 1, "each has its answer");
  };
  return [
    row("tells_10", told(10)),
    row("tells_100", told(100)),
    row("asks_10", (subject) => () => asks(subject, 10)),
    row("asks_100", (subject) => () => asks(subject, 100)),
    row("mixed_100", (subject) => async () => {
      for (let n = 0; n < 50; n += 1) subject.tell();
      await asks(subject, 50);
    }),
    row("sequence_1k", (subject) => async () => {
      const before = await subject.ask();
      let last = before;
      for (let n = 0; n < 1000; n += 1) last = await subject.ask();
      check(last === before + 1000, "one after the other");
    }),
    row("batch_1k", (subject) => async () => {
      for (let batch = 0; batch < 10; batch += 1) await asks(subject, 100);
    }),
    row("chain_10", (subject) => async () => check((await subject.ring(10)) === 10, "the chain")),
    row("aggregate_100", (subject) => async () => {
      check((await subject.gather(10)) === 100, "all came together");
    }),
  ];
}
