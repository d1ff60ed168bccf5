// Numbers as the panel shows them.

const grouped = new Intl.NumberFormat("en-US");
const price = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

/** A duration: `412 ms`, `1.24 s`, `12.4 s`. */
export function duration(ms) {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** A size in bytes: `96 B`, `4.1 KB`. */
export function size(bytes) {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export const number = (value) => grouped.format(value);

export const amount = (value) => price.format(value);

/** `1 token`, `12 tokens`. */
export const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
