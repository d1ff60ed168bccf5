// Drafts of configs: values that are not saved yet, which the browser tab keeps.

import { configPath } from "./api.js";

const DRAFT = "parley-draft:";

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/** Returns the draft `{revision, value, from}` of a config, or null. A copy has the app that it is `from`, and no `revision`. */
export const draftOf = (key) => parsed(sessionStorage.getItem(DRAFT + configPath(key)));

/** Keeps a draft that was begun from its `revision`. It must not contain secrets. */
export function keepDraft(key, draft) {
  try {
    sessionStorage.setItem(DRAFT + configPath(key), JSON.stringify(draft));
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
