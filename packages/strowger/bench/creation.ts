// The cost of creating messages: `npm run bench:creation`.
import { bench, do_not_optimize, group, run } from "mitata";

import {
  address,
  createErrorResponse,
  createMessage,
  createResponse,
  generateCorrelationId,
  generateMessageId,
  MessageError,
} from "strowger";

const to = address("tools/files");
const from = address("client");
const init = { to, from, type: "add", payload: { n: 1 } } as const;
const question = createMessage({ pattern: "ask", ...init });
const refusal = new MessageError("refused", "not today");
const metadata = { trace: "1", tenant: "a" };

group("message creation", () => {
  bench("createMessage (tell pattern)", () =>
    do_not_optimize(createMessage({ pattern: "tell", ...init })));
  bench("createMessage (ask pattern)", () =>
    do_not_optimize(createMessage({ pattern: "ask", ...init })));
  bench("createMessage with metadata", () =>
    do_not_optimize(createMessage({ pattern: "tell", ...init, metadata })));
  bench("address() creation", () => do_not_optimize(address("tools/files")));
  bench("generateMessageId()", () => do_not_optimize(generateMessageId()));
  bench("generateCorrelationId()", () => do_not_optimize(generateCorrelationId()));
  bench("createResponse()", () => do_not_optimize(createResponse(question, 42)));
  bench("createErrorResponse()", () => do_not_optimize(createErrorResponse(question, refusal)));
  bench("batch: 100 messages", () => {
    for (let n = 0; n < 100; n += 1) {
      do_not_optimize(createMessage({ pattern: "tell", ...init }));
    }
  });
});
await run();
