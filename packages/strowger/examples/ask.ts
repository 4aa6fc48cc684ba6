// The ways in which an ask can end: an answer, an error from the handler, the deadline.
import { ActorSystem, MessageError } from "strowger";

type Till = { pay: { payload: number; reply: string }; think: { reply: string } };

const system = new ActorSystem();
const till = system.spawn<Till>("till", () => ({
  handle: {
    pay: (amount) => {
      if (amount > 100) throw new MessageError("refused", "that is too much");
      return `paid ${amount}`;
    },
    think: (_, call) =>
      new Promise((resolve) => call.signal.addEventListener("abort", () => resolve("too late"))),
  },
}));

console.log(await till.ask("pay", 20));
for (const asked of [till.ask("pay", 200), till.ask("think", undefined, { deadlineMs: 20 })]) {
  const error: unknown = await asked.catch((thrown: unknown) => thrown);
  if (error instanceof MessageError) console.log(error.code, error.retryable);
}
await system.shutdown();
