// Values that are not saved yet, which the browser tab keeps: drafts of configs, and a copy on its way to another app.

import { configPath } from "./api.js";

const DRAFT = "parley-draft:";
const COPIED = "parley-copied-config";

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** Returns the draft `{revision, value}` of a config, or null. */
export const draftOf = (key) => parsed(sessionStorage.getItem(DRAFT + configPath(key)));

/** Keeps a draft that was begun from `revision`. It must not contain secrets. */
export function keepDraft(key, revision, value) {
  try {
    sessionStorage.setItem(DRAFT + configPath(key), JSON.stringify({ revision, value }));
  } catch {
    // The storage is full or blocked: the draft is in memory only.
  }
}

/** Lists the configs of which this tab has drafts: `{app, kind, name}`. */
export const allDrafts = () => Object.keys(sessionStorage).filter((key) => key.startsWith(DRAFT)).sort().map((key) => {
  const [app, kind, name] = key.slice(DRAFT.length).split("/").slice(-3).map(decodeURIComponent);
  return { app, kind, name };
});

export const forgetDraft = (key) => sessionStorage.removeItem(DRAFT + configPath(key));

export const keepCopy = (value) => sessionStorage.setItem(COPIED, JSON.stringify(value));

/** Returns the copied value, once, or null. */
export function takeCopy() {
  const copied = parsed(sessionStorage.getItem(COPIED));
  sessionStorage.removeItem(COPIED);
  return copied;
}
