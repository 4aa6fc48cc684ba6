import assert from "node:assert/strict";
import { after, test } from "node:test";

import { ActorSystem } from "../src/index.js";
import { cases, lastCases, type World } from "./conformance.js";
import { program, type Program } from "./program.js";

// Many crashes on purpose, one soon after another.
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

/** A reference to nobody: in process there is none but to an actor that has ended. */
function gone(at: string) {
  const system = new ActorSystem();
  system.spawn(at, () => ({ handle: {} }));
  const ref = system.find(at);
  assert.ok(ref !== undefined);
  void system.shutdown();
  return ref;
}

let ran = 0;
after(() => console.log(`conformance: ${ran} cases in process`));

for (const { name, run } of [...cases, ...lastCases]) {
  test(`in process: ${name}`, { timeout: 60_000 }, async () => {
    const { world, close } = here();
    try {
      await run(world);
    } finally {
      await close();
    }
    ran += 1;
  });
}
