// Times and amounts for people, without texts, so that the texts can use them too.

export const dateOf = (text) => new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

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
