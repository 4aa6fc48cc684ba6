import { type ActorContext, type ErrorData, parseError, type Topic } from "../src/index.js";

/** The messages of the actors in the conformance suite. A node has the same actors, in Rust. */
export type Program = {
  echo: { payload: unknown; reply: unknown };
  add: { payload: number; reply: number };
  sum: { reply: number };
  numbers: { payload: { from: number; to: number | null }; item: number };
  fail: { payload: ErrorData; reply: void };
  wait: { payload: { ms: number }; reply: null };
  abandoned: { reply: number };
  active: { reply: number };
  crash: {};
  end: {};
  publish: { payload: unknown };
};

/**
 * The program in TypeScript. State that outlives an incarnation is outside of the returned
 * function.
 */
export function program(topic: Topic<unknown>) {
  let abandoned = 0;
  let active = 0;
  return (context: ActorContext<Program>) => {
    let sum = 0;
    return {
      handle: {
        echo: (payload: unknown) => payload,
        add: (n: number) => (sum += n),
        sum: () => sum,
        *numbers({ from, to }: { readonly from: number; readonly to: number | null }) {
          active += 1;
          try {
            for (let n = from; to === null || n < to; n += 1) yield n;
          } finally {
            active -= 1;
          }
        },
        fail: (error: ErrorData) => {
          throw parseError(error);
        },
        wait: ({ ms }: { readonly ms: number }, call: { readonly signal: AbortSignal }) =>
          new Promise<null>((resolve) => {
            const late = setTimeout(resolve, ms, null);
            call.signal.addEventListener("abort", () => {
              clearTimeout(late);
              abandoned += 1;
              resolve(null);
            });
          }),
        abandoned: () => abandoned,
        active: () => active,
        crash: () => {
          throw new Error("on purpose");
        },
        end: () => context.stop(),
        publish: (payload: unknown) => void topic.publish(payload),
      },
    };
  };
}
