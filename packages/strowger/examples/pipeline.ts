// A pipeline of three actors: a full mailbox makes the previous actor wait.
import { ActorSystem } from "strowger";

type Lines = { line: { payload: string } };
type Words = { word: { payload: string }; counts: { reply: Record<string, number> } };

const system = new ActorSystem();
const counts = system.spawn<Words>("counts", () => {
  const seen: Record<string, number> = {};
  return {
    handle: {
      word: (word) => {
        seen[word] = (seen[word] ?? 0) + 1;
      },
      counts: () => seen,
    },
  };
}, { capacity: 2 });
const words = system.spawn<Lines>("words", () => ({
  handle: {
    line: async (line) => {
      for (const word of line.split(" ")) await counts.tell("word", word);
    },
  },
}), { capacity: 2 });
const source = system.spawn<{ read: { payload: string } }>("source", () => ({
  handle: {
    read: async (text) => {
      for (const line of text.split("\n")) await words.tell("line", line);
    },
  },
}));

await source.ask("read", "a rose is\na rose is\na rose");
await words.ask("line", "end");
console.log(JSON.stringify(await counts.ask("counts")));
await system.shutdown();
