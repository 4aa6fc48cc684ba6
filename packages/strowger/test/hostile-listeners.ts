// Calls listeners that throw, reject, and publish or send without end, and prints the name of each
// case after which this process still handles timers and messages.
import { code, type CodeProtocol } from "../src/code/index.js";
import { ActorSystem, type ActorRef, address, createMessage } from "../src/index.js";
import { Peer, silent } from "./peer.js";

const bug = new Error("a bug of the listener");

function thrower(): never {
  throw bug;
}

async function rejecter(): Promise<never> {
  throw bug;
}

/** A result that throws when it is looked at. */
function hostile(): object {
  return Object.defineProperty({}, "then", { get: thrower });
}

type Any = { go: { payload: unknown } };
const idle = () => ({ handle: { go: () => {} } });

function setup() {
  const system = new ActorSystem();
  const ended = system.spawn<Any>("ended", idle);
  void ended.stop();
  return { system, ended, topic: system.topic<number>("topic") };
}

async function remote(listen: (news: ReturnType<typeof topicOf>) => void): Promise<void> {
  const peer = new Peer(silent);
  const node = await peer.connect();
  listen(topicOf(node));
  await peer.clock.settle();
  peer.line.say({ kind: "item", id: 1, json: { value: 1 } }, { kind: "done", id: 1 });
  await peer.clock.settle();
  node.close();
}

function topicOf(node: Awaited<ReturnType<Peer["connect"]>>) {
  return node.topic<number>("news");
}

/** A stand-in for a node's sandbox, whose run writes a line and ends. */
function runs(): ActorRef<CodeProtocol> {
  const run = new ActorSystem().spawn<CodeProtocol>("code", () => ({
    handle: {
      execute: () => ({ value: 1, output: [], fresh: true }),
      *follow() {
        yield { line: { level: "log", text: "one" } };
        yield { ended: { value: 1, fresh: true } };
      },
      answer: () => true,
      forget: () => true,
      usage: thrower,
    },
  }));
  return run;
}

const cases: Readonly<Record<string, () => void | Promise<void>>> = {
  "a listener of a topic throws, rejects, and returns what throws": () => {
    const { topic } = setup();
    topic.listen(thrower);
    topic.listen(rejecter);
    topic.listen(hostile);
    topic.publish(1);
  },
  "a listener stops and listens again": () => {
    const { topic } = setup();
    const again = (): void => {
      stop();
      stop = topic.listen(again);
    };
    let stop = topic.listen(again);
    topic.publish(1);
  },
  "listeners publish to their topic without end": () => {
    const { topic } = setup();
    for (let n = 0; n < 3; n += 1) topic.listen((value) => void topic.publish(value + 1));
    topic.publish(1);
  },
  "a listener of dead letters throws and rejects": () => {
    const { system, ended } = setup();
    system.deadLetters.listen(thrower);
    system.deadLetters.listen(rejecter);
    void ended.tell("go", 1);
  },
  "a listener of dead letters tells an actor that has ended": () => {
    const { system, ended } = setup();
    system.deadLetters.listen((letter) => void ended.tell("go", letter));
    void ended.tell("go", 1);
  },
  "a listener of dead letters tells an actor that has ended, later": () => {
    const { system, ended } = setup();
    system.deadLetters.listen(async ({ type }) => {
      await Promise.resolve();
      await ended.tell("go", type).catch(() => {});
    });
    void ended.tell("go", 1);
  },
  "a reader of dead letters tells an actor that has ended": async () => {
    const { system, ended } = setup();
    const reader = system.deadLetters.subscribe();
    const read = async (): Promise<void> => {
      for await (const { type } of reader) void ended.tell("go", type);
    };
    const reading = read();
    void ended.tell("go", 1);
    await new Promise((resolve) => setTimeout(resolve, 1));
    await system.shutdown();
    await reading;
  },
  "listeners of troubles throw, reject, and cause more": async () => {
    const { system, ended } = setup();
    let n = 0;
    system.troubles.listen(thrower);
    system.troubles.listen(rejecter);
    system.troubles.listen(() => void ended.tell("go", 1));
    system.troubles.listen(() => {
      n += 1;
      system.spawn(`bad-${n}`, thrower, { restart: "temporary" });
    });
    system.troubles.listen(async () => {
      await Promise.resolve();
      n += 1;
      system.spawn(`bad-${n}`, thrower, { restart: "temporary" });
    });
    system.deadLetters.listen(thrower);
    system.deadLetters.listen(rejecter);
    void ended.tell("go", 1);
    await system.spawn("bad", thrower, { restart: "temporary" }).stop();
  },
  "a listener of a topic in a node throws": () => remote((news) => news.listen(thrower, thrower)),
  "a listener of a topic in a node rejects": () =>
    remote((news) => news.listen(rejecter, rejecter)),
  "what a run writes is thrown at": async () => {
    for (const onOutput of [thrower, rejecter]) {
      const place = { actor: runs };
      await code(place).execute("1", { onOutput }).catch(() => {});
    }
  },
  "a message in an envelope finds nobody": () => {
    const { system } = setup();
    const to = address("nobody");
    void system.router.tell(createMessage({ pattern: "tell", to, type: "go", payload: 1 }));
  },
  "a postStop rejects after its time": async () => {
    const { system } = setup();
    const postStop = (): Promise<void> =>
      new Promise((_, reject) => setTimeout(reject, 60, bug));
    const ref = system.spawn<{}>("late", () => ({ handle: {}, postStop }), { shutdownMs: 1 });
    await ref.stop();
  },
};

for (const [name, run] of Object.entries(cases)) {
  await run();
  // More than one turn of the event loop, for what fails later.
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setTimeout(resolve, 2));
  const { system, topic } = setup();
  const heard: number[] = [];
  topic.listen((value) => void heard.push(value));
  const ref = system.spawn<{ get: { reply: number } }>("get", () => ({ handle: { get: () => 7 } }));
  topic.publish(await ref.ask("get"));
  if (heard[0] === 7) console.log(name);
}
await new Promise((resolve) => setTimeout(resolve, 100));
console.log("end");
