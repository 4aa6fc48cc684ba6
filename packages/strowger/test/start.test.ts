import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, startNode } from "../src/index.js";

test("without a program the error names all places where one was looked for", async () => {
  const env = { PATH: "/nowhere" };
  await assert.rejects(startNode({ env }), {
    code: "refused",
    message: /STROWGER_BIN is not set, and there is no strowger on the PATH/,
  });
  await assert.rejects(startNode({ env: { STROWGER_BIN: "/nowhere/strowger" } }), {
    code: "refused",
    message: "STROWGER_BIN is /nowhere/strowger, which is not an executable file",
  });
});

test("a program that is no node is told apart", async () => {
  const said = { code: "failed", message: /did not start: it ended with/ };
  await assert.rejects(startNode({ binary: "/bin/false", log: () => {} }), said);
  const echoed = { code: "protocol", message: /unexpected first line from the node: "run --json/ };
  await assert.rejects(startNode({ binary: "/bin/echo", log: () => {} }), echoed);
});

test("nobody at a place is an error that names it", async () => {
  await assert.rejects(connect("/nowhere/gateway.sock"), {
    code: "unreachable",
    message: /no node at \/nowhere\/gateway\.sock: .*ENOENT/,
  });
  for (const where of ["", "http://localhost", "tcp://localhost", "tcp://me:secret@localhost:1"]) {
    await assert.rejects(connect(where), { code: "bad-request", message: /ws:\/\/HOST:PORT/ });
  }
});
