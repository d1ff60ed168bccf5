// Numbers in requests. JSON has no others than finite ones: `JSON.stringify` would send null instead.

import { invalidParameter } from "./errors.js";

/** Return a time that an app has measured as the server reads it, which is in whole units. */
export function rounded(name: string, value: number): number {
  if (!(finite(name, value) >= 0)) throw invalidParameter(`${name} must not be negative`);
  return Math.round(value);
}

/** Return the value of a field or a parameter. Throws `ParleyError` for a number that is not finite. */
export function finite<T>(name: string, value: T): T {
  if (typeof value === "number" && !Number.isFinite(value)) throw invalidParameter(`${name} must be a finite number`);
  return value;
}
