import assert from "node:assert/strict";
import { test } from "node:test";

import { Inlet, Outlet } from "../src/credit.js";
import { encodeFrame, FrameDecoder } from "../src/frame.js";
import { address, parseAddress, parseError, parseMessage } from "../src/index.js";
import { list, number, record, text, vectors } from "./vectors.js";

const addresses = vectors("addresses");
const envelopes = vectors("envelopes");
const errors = vectors("errors");
const credits = vectors("credits");
const frames = vectors("frames");

function octets(hex: unknown): Uint8Array {
  return Uint8Array.from(Buffer.from(text(hex), "hex"));
}

test("addresses of the specification are read", () => {
  for (const vector of list(addresses, "valid")) {
    const parsed = parseAddress(text(vector["text"]));
    assert.deepEqual(parsed.keys, vector["keys"]);
    assert.equal(address(parsed.path), vector["text"]);
  }
});

test("what is no address is refused with its code", () => {
  for (const { text: given, why, code } of list(addresses, "invalid")) {
    assert.throws(() => parseAddress(text(given)), { code }, text(why));
  }
});

test("envelopes of the specification are read, and written as they came", () => {
  for (const { name, message } of list(envelopes, "valid")) {
    const read: unknown = JSON.parse(JSON.stringify(parseMessage(message)));
    assert.deepEqual(read, message, text(name));
  }
});

test("what is no envelope is refused with its code", () => {
  for (const { name, message, code } of list(envelopes, "invalid")) {
    assert.throws(() => parseMessage(message), { code }, text(name));
  }
});

test("errors of the specification are read", () => {
  for (const { error, code, retryable } of list(errors, "valid")) {
    const read = parseError(error);
    assert.deepEqual([read.code, read.retryable], [code, retryable]);
    assert.deepEqual(read.toJSON(), { ...record(error), code });
  }
});

test("what is no error is refused with its code", () => {
  for (const { error, code } of list(errors, "invalid")) {
    assert.throws(() => parseError(error), { code }, JSON.stringify(error));
  }
});

test("a source sends what it has credit for", () => {
  for (const vector of list(credits, "source")) {
    const outlet = new Outlet();
    for (const step of list(vector, "steps")) {
      if ("grant" in step) outlet.grant(number(step["grant"]));
      else assert.equal(outlet.send(), step["send"], text(vector["name"]));
      assert.equal(outlet.credit, step["left"], text(vector["name"]));
    }
  }
});

test("a reader gives back half a window at a time", () => {
  for (const vector of list(credits, "reader")) {
    const inlet = new Inlet(number(vector["window"]));
    assert.equal(inlet.first, vector["first"]);
    const after = vector["after"];
    assert.ok(Array.isArray(after));
    assert.deepEqual(after.map(() => inlet.take()), after);
  }
});

test("frames of the specification are read and written, however they are cut", () => {
  for (const vector of list(frames, "valid")) {
    const protocol = vector["protocol"] === 1 ? 1 : 2;
    const given = octets(vector["octets"]);
    for (const size of [1, 7, given.length]) {
      const decoder = new FrameDecoder({ limit: number(vector["limit"]), protocol });
      const read = [];
      for (let at = 0; at < given.length; at += size) {
        read.push(...decoder.feed(given.subarray(at, at + size)));
      }
      decoder.finish();
      const [frame] = read;
      assert.ok(frame !== undefined && read.length === 1, text(vector["name"]));
      const payload = Buffer.from(frame.payload).toString("hex");
      assert.deepEqual({ ...frame, payload }, vector["frame"]);
      assert.deepEqual(encodeFrame(frame), given);
    }
  }
});

test("what is no frame is refused with its code, and every time after", () => {
  for (const { name, limit, octets: given, code } of list(frames, "invalid")) {
    const decoder = new FrameDecoder({ limit: number(limit), protocol: 1 });
    const read = (): void => {
      decoder.feed(octets(given));
      decoder.finish();
    };
    assert.throws(read, { code }, text(name));
    if (text(given).length >= 48) assert.throws(read, { code }, text(name));
  }
});

test("a tell is no frame of version 1", () => {
  const tell = list(frames, "valid").find((vector) => vector["name"] === "tell");
  const decoder = new FrameDecoder({ limit: 1024, protocol: 1 });
  assert.throws(() => decoder.feed(octets(tell?.["octets"])), { code: "protocol" });
});
