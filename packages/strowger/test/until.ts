import assert from "node:assert/strict";

/** Less than the timeout of a test, which would not end what waits. */
const LATEST_MS = 50_000;

/** Waits until a condition holds. Throws if it does not hold in time. */
export async function until(is: () => Promise<boolean>): Promise<void> {
  const late = performance.now() + LATEST_MS;
  while (!(await is())) assert.ok(performance.now() < late, "the condition never holds");
}
