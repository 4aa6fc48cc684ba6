// A stream whose reader stops early: the producer makes no more than a window of items, and then
// ends.
import { ActorSystem } from "strowger";

type Numbers = { count: { item: number } };

const system = new ActorSystem();
let made = 0;
const numbers = system.spawn<Numbers>("numbers", () => ({
  handle: {
    *count() {
      try {
        for (;;) yield (made += 1);
      } finally {
        console.log("the producer left");
      }
    },
  },
}));

for await (const n of numbers.stream("count", undefined, { window: 4 })) {
  console.log(n);
  if (n === 3) break;
}
await system.shutdown();
console.log(made < 10);
