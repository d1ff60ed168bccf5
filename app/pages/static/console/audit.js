// Rows of the audit log in words: who has done what, and to whom.

import { withShortIds } from "./formats.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.audit;

export const actorOf = (actor) => texts.actors[actor] ?? actor;
/** The author of a revision, as the audit log names it. */
export const authorOf = (author) => texts.authors[author] ?? author;
export const actionOf = (action) => texts.actions[action] ?? action;
/** Actions for a menu: `[id, text]`. */
export const ACTION_OPTIONS = Object.entries(texts.actions).map(([id, said]) => [id, texts.inMenu(said)]);

/** What was changed: its kind, and its name with ids shortened. */
export function subjectOf({ kind, name }) {
  const words = kind.replaceAll("_", " ");
  return texts.subject(texts.kinds[kind] ?? texts.inMenu(words), withShortIds(name));
}
