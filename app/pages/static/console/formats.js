// Days and amounts for people, without texts, so that the texts can use them too.

/** Returns a day in UTC, as `2026-01-31`, for people. */
export const dayOf = (day) => new Date(day).toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" });

/** Shortens the long ids in a text: what is long and has digits. */
export const withShortIds = (text) => String(text).replaceAll(/\b(?=[\w-]*\d[\w-]*\d)[\w-]{24,}\b/g, (id) => `${id.slice(0, 8)}…${id.slice(-6)}`);

/** Returns minor units of a currency for people: `199`, `usd` is `$1.99`. */
export function amountOf(amount, currency) {
  if (amount === undefined || amount === null) return "";
  try {
    const format = new Intl.NumberFormat(undefined, { style: "currency", currency });
    return format.format(amount / 10 ** format.resolvedOptions().maximumFractionDigits);
  } catch {
    return `${amount} ${currency}`;
  }
}

/** Returns a decimal number of a currency for people. Small amounts keep the digits that tell them apart. */
export function costOf(amount, currency) {
  const digits = Math.abs(amount) < 1 ? 4 : 2;
  try {
    return new Intl.NumberFormat(undefined, { style: "currency", currency, maximumFractionDigits: digits }).format(amount);
  } catch {
    return `${amount} ${currency}`;
  }
}

/** Returns seconds for people: `90` is `2 min`. */
export function durationOf(seconds) {
  if (!seconds) return "–";
  const [size, unit] = seconds < 60 ? [1, "s"] : seconds < 7_200 ? [60, "min"] : seconds < 172_800 ? [3_600, "h"] : [86_400, "d"];
  return `${Math.round(seconds / size)}\u00a0${unit}`;
}

const digitsOf = (currency) => new Intl.NumberFormat(undefined, { style: "currency", currency }).resolvedOptions().maximumFractionDigits;

/** Returns minor units as a decimal number to edit: `199`, `usd` is `1.99`. */
export const majorOf = (amount, currency) => (amount / 10 ** digitsOf(currency)).toFixed(digitsOf(currency));

/** Returns the minor units of a typed number, with a point or a comma, or `NaN`. */
export function minorOf(text, currency) {
  const digits = digitsOf(currency);
  const [, whole, part = ""] = /^\s*(\d{1,15})(?:[.,](\d*))?\s*$/.exec(text) ?? [];
  return whole === undefined || part.length > digits ? NaN : Number(whole + part.padEnd(digits, "0"));
}
