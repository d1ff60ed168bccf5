// What a response with an error says to a person.

import { durationOf } from "./formats.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.errors;
const TYPE = /^([a-z_.]+): /; // An error of the API begins with its type, which is for programs.

/** `message`: that of the API, or `undefined` if something before the server has answered. */
export function saidOf(status, message, { retryAfter, request } = {}) {
  const type = TYPE.exec(message ?? "")?.[1];
  const what = message && sentenceOf(message.replace(TYPE, ""));
  if (status === 429) return `${what ?? texts.limited} ${retryAfter ? texts.againIn(durationOf(retryAfter)) : texts.later}`;
  if (status === 403 && what?.includes("X-Parley-Csrf")) return texts.outdated;
  if (type === "internal") return texts.failed(request);
  if (type === "not_found") return texts.otherVersion;
  if (status >= 500) return `${what ?? texts.unavailable} ${texts.later}`;
  return what ?? texts.byStatus[status] ?? texts.unknown(status);
}

const sentenceOf = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
