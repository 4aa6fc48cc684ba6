/** Returns `true` for a promise, and for any other object with a `then`. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value
    && typeof value.then === "function";
}

/**
 * Returns a promise of a thenable's result. Only a promise settles once and never calls back before
 * `then` has returned, so any other thenable is wrapped in one.
 */
export function adopted<T>(value: PromiseLike<T>): Promise<T> {
  if (value instanceof Promise && value.then === Promise.prototype.then) return value;
  return new Promise((resolve) => resolve(value));
}

/**
 * Calls a function of the user whose result is not needed. Passes what it throws, or what its
 * promise is rejected with, to `failed`, which must not throw.
 */
export function callSafely<A extends unknown[]>(
  failed: (error: unknown) => void,
  callback: (...values: A) => unknown,
  ...values: A
): void {
  try {
    const result = callback(...values);
    if (isThenable(result)) adopted(result).then(undefined, failed);
  } catch (thrown) {
    failed(thrown);
  }
}
