// A counter that fails and is restarted.
import { ActorSystem } from "strowger";

type Counter = { add: { payload: number; reply: number }; fail: {} };

const system = new ActorSystem();
const counter = system.spawn<Counter>("counter", () => {
  let count = 0;
  return {
    handle: {
      add: (by) => (count += by),
      fail: () => {
        throw new Error("on purpose");
      },
    },
  };
});

void counter.tell("add", 1);
console.log(await counter.ask("add", 2)); // 3
void counter.tell("fail");
console.log(await counter.ask("add", 1)); // 1: a new incarnation
console.log(counter.info().restarts); // 1
await system.shutdown();
