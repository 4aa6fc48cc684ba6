// An actor in this process receives session events that Rust actors publish in a node. Requires the
// program `strowger` on the PATH, or in STROWGER_BIN.
import { execFile } from "node:child_process";

import { ActorSystem, startNode } from "strowger";

type SessionEvent = { readonly kind: string; readonly seid: number; readonly peer: string };
type Ledger = { event: { payload: SessionEvent } };

const system = new ActorSystem();
const heard = system.topic<number>("heard");
const ledger = system.spawn<Ledger>("ledger", () => {
  const open = new Set<number>();
  return {
    handle: {
      event: ({ kind, seid }) => {
        if (kind === "established") open.add(seid);
        heard.publish(open.size);
      },
    },
  };
});

const node = await startNode({ args: ["--port", "0"] });
const stop = node.topic<SessionEvent>("n4/sessions").listen((event) => {
  void ledger.tell("event", event);
});
// A control plane that establishes sessions until it is killed, or for a minute.
const to = String(node.announcement["n4"]);
const smf = execFile(node.binary, ["pfcp", "load", "--for", "1m", "--to", to]);

try {
  for await (const sessions of heard.subscribe()) {
    console.log(sessions, "established");
    if (sessions === 3) break;
  }
} finally {
  smf.kill();
}
stop();
await node.stop();
await system.shutdown();
