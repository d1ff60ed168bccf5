// Times as all pages show them, in the language and the time zone of the browser.

const SHORT = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };
const YEAR = { year: "numeric" };

/** Returns the time of a day: `9:30 PM`. */
export const clockOf = (at) => at.toLocaleTimeString(undefined, { timeStyle: "short" });

/** Returns a time for lists: without the year if it is this one. */
export const shortDateOf = (at) => at.toLocaleString(undefined, { ...SHORT, ...(at.getFullYear() !== new Date().getFullYear() && YEAR) });

/** Returns a complete time. `at`: a text, or Unix milliseconds. */
export const dateOf = (at) => new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
