import assert from "node:assert/strict";
import { test } from "node:test";

import { Histogram } from "../src/histogram.js";

test("a value is reported within a sixty-fourth of itself", () => {
  for (let power = 0; power < 47; power += 1) {
    for (const part of [1, 1.01, 1.5, 1.99]) {
      const value = part * 2 ** power;
      const histogram = new Histogram();
      for (const each of [value, 2 ** 48]) histogram.record(each);
      const reported = histogram.percentile(0.5);
      assert.ok(reported >= value && reported <= value * (1 + 1 / 64), `${value}: ${reported}`);
    }
  }
});

test("values below one, and beyond the largest, are counted at the ends", () => {
  const histogram = new Histogram();
  for (const value of [-1, 0, Number.NaN, 2 ** 60]) histogram.record(value);
  const counts = histogram.buckets().map(({ count }) => count).filter((count) => count > 0);
  assert.deepEqual(counts, [3, 1]);
});
