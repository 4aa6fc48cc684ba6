import { test } from "node:test";

import { type ActorRef, ActorSystem, type AnyProtocol } from "../src/index.js";
import { assertComplete, suite, type World } from "./conformance.js";
import { program, type Program } from "./program.js";

// The cases crash the actors on purpose, in quick succession.
const rules = {
  intensity: { restarts: 1000, withinMs: 1000 },
  backoff: { initialMs: 0, maxMs: 0 },
};

function here(): { readonly world: World; readonly close: () => Promise<unknown> } {
  const system = new ActorSystem({ deadlineMs: 50_000 });
  const topic = system.topic<unknown>("conformance");
  const path = "conformance/echo";
  const actor = system.spawn<Program>(path, program(topic), { ...rules, capacity: 64 });
  const small = system.spawn<Program>("conformance/small", program(topic), {
    ...rules,
    capacity: 2,
    overflow: "fail",
  });
  const world: World = {
    actor,
    small,
    path,
    subscribe: () => topic.subscribe(),
    untyped: (at) => system.find(at) ?? gone(at),
  };
  return { world, close: () => system.shutdown() };
}

/** Returns a reference to a missing actor. In process, only an actor that has ended gives one. */
function gone(at: string): ActorRef<AnyProtocol> {
  const system = new ActorSystem();
  const ref = system.spawn<AnyProtocol>(at, () => ({ handle: {} }));
  void system.shutdown();
  return ref;
}

const ran: string[] = [];
for (const { name, run } of suite) {
  test(`in process: ${name}`, { timeout: 60_000 }, async () => {
    const { world, close } = here();
    try {
      await run(world);
    } finally {
      await close();
    }
    ran.push(name);
  });
}
test("in process: no case was left out", () => assertComplete(ran, "in process"));
