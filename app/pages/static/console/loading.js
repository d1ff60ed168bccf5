// What a page shows while it reads, and after a failure.

import { html, useEffect, useState } from "../vendor/preact.js";
import { TEXTS } from "./texts.js";

/** Reads a value when `keys` change. Returns `{value, error, reload}`; the value stays while it is read again. */
export function useLoaded(load, keys) {
  const [state, setState] = useState({});
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    load().then(
      (value) => current && setState({ value }),
      (error) => current && setState(({ value }) => ({ value, error })),
    );
    return () => (current = false);
  }, [...keys, turn]);
  return { ...state, reload: () => setTurn((count) => count + 1) };
}

export function Loaded({ state, children }) {
  const failed = state.error && html`<p class="error" role="alert">
    ${state.error.message} <button class="quiet small" onClick=${state.reload}>${TEXTS.retry}</button>
  </p>`;
  if (state.value === undefined) return failed || html`<p class="muted" role="status">${TEXTS.loading}…</p>`;
  return html`<div class="loaded">${failed}${children(state.value)}</div>`;
}
