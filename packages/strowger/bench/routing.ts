// The cost of routing messages in envelopes: `npm run bench:routing`.
import { bench, group, run } from "mitata";

import { ActorSystem, address, createMessage } from "strowger";

import { check } from "./row.js";

const { router } = new ActorSystem();
const from = address("client");
const echo = address("echo");
const noop = address("noop");
const compute = address("compute");
router.register(echo, (message) => message.payload);
router.register(noop, () => undefined);
router.register(compute, (message) => {
  let sum = 0;
  for (let n = 0; n < Number(message.payload); n += 1) sum += n;
  return sum;
});

const ask = async (to: typeof echo, payload: number, answer: unknown): Promise<void> => {
  const message = createMessage({ pattern: "ask", to, from, type: "run", payload });
  check((await router.ask(message)).payload === answer, "the answer");
};

group("routing", () => {
  bench("Router.tell() to echo program", () =>
    router.tell(createMessage({ pattern: "tell", to: echo, from, type: "run", payload: 1 })));
  bench("Router.ask() to echo program", () => ask(echo, 7, 7));
  bench("Router.ask() to noop program", () => ask(noop, 7, undefined));
  bench("Router.ask() to compute program", () => ask(compute, 10, 45));
  bench("ask round-trip (echo)", () => ask(echo, 1, 1));
  bench("sequential: 10 ask operations", async () => {
    for (let n = 0; n < 10; n += 1) await ask(echo, n, n);
  });
  bench("concurrent: 10 ask operations", async () => {
    await Promise.all(Array.from({ length: 10 }, (_, n) => ask(echo, n, n)));
  });
});
await run();
