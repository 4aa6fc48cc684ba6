import assert from "node:assert/strict";
import { test } from "node:test";

import {
  ActorSystem,
  address,
  createMessage,
  generateCorrelationId,
  generateMessageId,
  MessageError,
  parseMessage,
} from "../src/index.js";

const here = address("here");
const there = address("there");

function question(type: string, payload: unknown) {
  return createMessage({ pattern: "ask", to: there, from: here, type, payload });
}

test("an envelope is answered by an envelope", async () => {
  const { router } = new ActorSystem();
  router.register(there, (message) => `${message.type} for ${message.from}`);
  const asked = question("greet", "hello");
  const answer = await router.ask(asked);
  assert.equal(answer.payload, "greet for @(here)");
  assert.deepEqual([answer.to, answer.from], [here, there]);
  assert.equal(answer.correlationId, asked.correlationId);
  parseMessage(JSON.parse(JSON.stringify(answer)));
});

test("an error is an answer, not a rejection", async () => {
  const { router } = new ActorSystem();
  const nobody = await router.ask(question("greet", "hello"));
  assert.equal(nobody.error?.code, "unknown-target");
  router.register(there, () => {
    throw new MessageError("refused", "not today");
  });
  const refused = await router.ask(question("greet", "hello"));
  assert.deepEqual(refused.error, { code: "refused", message: "not today", retryable: false });
});

test("an envelope reaches the handler of its type", async () => {
  const system = new ActorSystem();
  system.spawn<{ double: { payload: number; reply: number } }>("there", () => ({
    handle: { double: (n) => n * 2 },
  }));
  assert.equal((await system.router.ask(question("double", 4))).payload, 8);
});

test("what is told to nobody is refused, and a dead letter", async () => {
  const system = new ActorSystem();
  const told = system.router.tell(createMessage({ pattern: "tell", to: there, type: "greet" }));
  await assert.rejects(told, { code: "unknown-target" });
  assert.equal(system.stats().deadLetters, 1);
});

test("a stream comes by envelope as well", async () => {
  const { router } = new ActorSystem();
  router.register(there, () => [1, 2, 3].values());
  const message = createMessage({ pattern: "stream", to: there, type: "count" });
  const seen: unknown[] = [];
  for await (const item of router.stream(message)) seen.push(item);
  assert.deepEqual(seen, [1, 2, 3]);
});

test("ids are not made twice", () => {
  const ids = new Set<string>();
  for (let n = 0; n < 1000; n += 1) ids.add(generateMessageId()).add(generateCorrelationId());
  assert.equal(ids.size, 2000);
});

test("a reader of a topic gets what is published, and knows what it missed", async () => {
  const topic = new ActorSystem().topic<number>("numbers");
  const reader = topic.subscribe({ capacity: 2 });
  for (const n of [1, 2, 3]) assert.equal(topic.publish(n), 1);
  assert.deepEqual([await reader.next(), await reader.next()].map(({ value }) => value), [2, 3]);
  assert.equal(reader.missed, 1);
  await reader.return?.();
  assert.equal(topic.publish(4), 0);
});

test("a topic ends with its system, and a reader with its signal", async () => {
  const system = new ActorSystem();
  const topic = system.topic<number>("numbers");
  const abort = new AbortController();
  const [all, some] = [topic.subscribe(), topic.subscribe({ signal: abort.signal })];
  abort.abort();
  assert.equal((await some.next()).done, true);
  topic.publish(1);
  await system.shutdown();
  const seen: number[] = [];
  for await (const n of all) seen.push(n);
  assert.deepEqual(seen, [1]);
});

test("an envelope has the time at which what runs began to run, or a later one", async () => {
  for (let round = 0; round < 3; round += 1) {
    const begun = Date.now();
    await Promise.resolve();
    for (let n = 0; n < 200; n += 1) {
      const { timestamp } = question("greet", n);
      assert.ok(timestamp >= begun && timestamp <= Date.now());
    }
  }
});
