import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { code, type CodeProtocol } from "../src/code/index.js";
import { ActorSystem, type Trouble } from "../src/index.js";
import { VirtualClock } from "../src/testing.js";
import { Peer, silent } from "./peer.js";
import { written } from "./written.js";

const bug = new Error("a bug of the listener");

function thrower(): never {
  throw bug;
}

async function rejecter(): Promise<never> {
  throw bug;
}

function setup() {
  const clock = new VirtualClock();
  const system = new ActorSystem({ clock });
  const troubles: Trouble[] = [];
  system.troubles.listen((trouble) => void troubles.push(trouble));
  return { clock, system, troubles, topic: system.topic<number>("numbers") };
}

test("nothing a listener does ends the process", { timeout: 100_000 }, async () => {
  const file = fileURLToPath(new URL("hostile-listeners.js", import.meta.url));
  const names = Array.from(
    readFileSync(file, "utf8").matchAll(/^ {4}"(.*)": /gm),
    ([, name = ""]) => name,
  );
  assert.ok(names.length > 10);
  // Shorter than the timeout of the test, which would not end the process.
  const limit = { timeout: 90_000, killSignal: "SIGKILL" } as const;
  const { stdout } = await promisify(execFile)(process.execPath, [file], limit);
  assert.deepEqual(stdout.trim().split("\n"), [...names, "end"]);
});

test("the error of a listener is a trouble, and the other listeners hear the value", async () => {
  const { clock, system, troubles, topic } = setup();
  const heard: number[] = [];
  topic.listen(thrower);
  topic.listen(rejecter);
  topic.listen((value) => void heard.push(value));
  system.deadLetters.listen(thrower);
  assert.equal(topic.publish(1), 3);
  await clock.settle();
  const { router } = system;
  await router.tell({ id: "1", pattern: "tell", to: "@(nobody)", type: "go", timestamp: 0 })
    .catch(() => {});
  assert.deepEqual(heard, [1]);
  const listener = { source: "listener", error: bug } as const;
  assert.deepEqual(troubles, [
    { ...listener, topic: "numbers" },
    { ...listener, topic: "numbers" },
    { ...listener, topic: "dead letters" },
  ]);
});

test("the error of a listener of troubles is one line on standard error", async () => {
  for (const listener of [thrower, rejecter]) {
    const { clock, system, topic } = setup();
    const lines = await written(async () => {
      system.troubles.listen(listener);
      topic.listen(thrower);
      for (const value of [1, 2, 3]) topic.publish(value);
      await clock.settle();
    });
    const line = 'strowger: a listener of the topic "troubles" failed: a bug of the listener';
    assert.deepEqual(lines, [line]);
  }
});

test("without a listener of troubles, a listener that fails is one line", async () => {
  const topic = new ActorSystem().topic<number>("numbers");
  topic.listen(thrower);
  const lines = await written(async () => {
    for (const value of [1, 2, 3]) topic.publish(value);
  });
  assert.deepEqual(lines, [
    'strowger: a listener of the topic "numbers" failed: a bug of the listener',
  ]);
});

test("a listener that listens again hears the next value, not the same one", () => {
  const { topic } = setup();
  const heard: number[] = [];
  const once = (value: number): void => {
    heard.push(value);
    stop();
    if (heard.length < 100) stop = topic.listen(once);
  };
  let stop = topic.listen(once);
  topic.publish(1);
  topic.publish(2);
  assert.deepEqual(heard, [1, 2]);
});

test("a listener that another one stops does not hear the value", () => {
  const { topic } = setup();
  const heard: string[] = [];
  topic.listen(() => stop());
  const stop = topic.listen(() => void heard.push("stopped"));
  topic.publish(1);
  assert.deepEqual(heard, []);
});

test("all listeners and readers get values in the order of publishing", async () => {
  const { topic } = setup();
  const reader = topic.subscribe();
  const heard: Record<"first" | "second", number[]> = { first: [], second: [] };
  topic.listen((value) => {
    heard.first.push(value);
    if (value < 4) topic.publish(value * 2);
  });
  topic.listen((value) => {
    heard.second.push(value);
    if (value === 1) topic.publish(10);
  });
  topic.publish(1);
  assert.deepEqual(heard, { first: [1, 2, 10, 4], second: [1, 2, 10, 4] });
  const read: (number | undefined)[] = [];
  for (let n = 0; n < 4; n += 1) read.push((await reader.next()).value);
  assert.deepEqual(read, [1, 2, 10, 4]);
});

test("listeners that publish without end are cut, with a trouble", () => {
  const { topic, troubles } = setup();
  let heard = 0;
  for (let n = 0; n < 2; n += 1) {
    topic.listen((value) => {
      heard += 1;
      topic.publish(value);
    });
  }
  topic.publish(1);
  assert.deepEqual(troubles.map(({ error }) => Reflect.get(Object(error), "code")), ["full"]);
  const before = heard;
  topic.publish(2);
  assert.equal(heard, 2 * before);
});

test("a dead letter of a listener of dead letters is counted, not published", async () => {
  const { clock, system } = setup();
  const ended = system.spawn<{ go: { payload: unknown } }>("ended", () => ({
    handle: { go: () => {} },
  }));
  await ended.stop();
  let heard = 0;
  system.deadLetters.listen((letter) => {
    heard += 1;
    void ended.tell("go", letter);
  });
  system.deadLetters.listen(async (letter) => {
    await clock.settle();
    void ended.tell("go", letter);
  });
  void ended.tell("go", 1);
  await clock.settle();
  await clock.settle();
  assert.deepEqual([heard, system.stats().deadLetters], [1, 3]);
});

test("a listener of a topic in a node goes on after it has failed", async () => {
  const peer = new Peer(silent);
  const node = await peer.connect();
  const troubles: Trouble[] = [];
  node.troubles.listen((trouble) => void troubles.push(trouble));
  const heard: number[] = [];
  let isEnded = false;
  const news = node.topic<number>("news");
  news.listen((value) => {
    heard.push(value);
    return value === 1 ? thrower() : rejecter();
  }, () => {
    isEnded = true;
    thrower();
  });
  await peer.clock.settle();
  for (const value of [1, 2]) peer.line.say({ kind: "item", id: 1, json: { value } });
  await peer.clock.settle();
  assert.deepEqual([heard, isEnded], [[1, 2], false]);
  peer.line.say({ kind: "done", id: 1 });
  await peer.clock.settle();
  assert.equal(isEnded, true);
  const trouble = { source: "listener", topic: "news", error: bug } as const;
  assert.deepEqual(troubles, [trouble, trouble, trouble]);
});

test("a run rejects with the error of its onOutput, thrown or rejected", async () => {
  const system = new ActorSystem();
  let isLeft = false;
  const run = system.spawn<CodeProtocol>("code", () => ({
    handle: {
      execute: thrower,
      async *follow(_, { signal }) {
        yield { line: { level: "log", text: "one" } };
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        isLeft = true;
      },
      answer: thrower,
      forget: thrower,
      usage: thrower,
    },
  }));
  for (const onOutput of [thrower, rejecter]) {
    isLeft = false;
    await assert.rejects(code({ actor: () => run }).execute("1", { onOutput }), bug);
    await new VirtualClock().settle();
    assert.equal(isLeft, true);
  }
});
