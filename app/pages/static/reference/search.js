// The search: a dialog with a field and the operations that it finds. `/` and Ctrl-K open it.

import { html, render, useEffect, useRef, useState } from "../vendor/preact.js";
import { listed } from "./outline.js";
import { found } from "./ranking.js";

const SHOWN = 12;

/** Let the button and the keys open the search. */
export function showSearch(outline) {
  const dialog = document.createElement("dialog");
  dialog.className = "search";
  dialog.setAttribute("aria-label", "Search the API");
  document.body.append(dialog);
  const operations = listed(outline);
  const open = () => {
    if (dialog.open) return;
    render(null, dialog);
    render(html`<${Search} operations=${operations} onClose=${() => dialog.close()} />`, dialog);
    dialog.showModal();
  };
  document.querySelector(".tools .find").addEventListener("click", open);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  addEventListener("keydown", (event) => {
    const isShortcut = event.key === "k" && (event.ctrlKey || event.metaKey);
    if (!isShortcut && (event.key !== "/" || isTyping(event.target))) return;
    event.preventDefault();
    open();
  });
}

function isTyping(target) {
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

function Search({ operations, onClose }) {
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const field = useRef();
  useEffect(() => field.current.focus(), []);
  const results = found(operations, query).slice(0, SHOWN);
  const go = (operation) => {
    onClose();
    location.hash = operation.anchor;
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && results.length) {
      event.preventDefault();
      setChosen((chosen + step + results.length) % results.length);
    } else if (event.key === "Enter" && results[chosen]) {
      event.preventDefault();
      go(results[chosen]);
    }
  };
  return html`
    <input
      ref=${field}
      type="text"
      enterkeyhint="go"
      role="combobox"
      aria-label="Search the API"
      aria-expanded=${String(results.length > 0)}
      aria-controls="found"
      aria-autocomplete="list"
      aria-activedescendant=${results[chosen] ? `found-${chosen}` : undefined}
      placeholder="An operation or a path, such as conversation"
      autocomplete="off"
      spellcheck="false"
      value=${query}
      onInput=${(event) => (setQuery(event.target.value), setChosen(0))}
      onKeyDown=${onKeyDown}
    />
    <ul id="found" role="listbox" aria-label="Operations" hidden=${!results.length}>
      ${results.map((one, index) => Result(one, index, index === chosen, () => go(one)))}
    </ul>
    ${query.trim() && !results.length && html`<p role="status">No operation has these words.</p>`}
  `;
}

function Result(operation, index, isChosen, onClick) {
  const { group, section, title, method, path } = operation;
  return html`<li key=${operation.anchor} id=${`found-${index}`} role="option" aria-selected=${String(isChosen)} onClick=${onClick}>
    <strong>${title}</strong> <small>${group.title} · ${section.title}</small>
    <code><b class=${method.toLowerCase()}>${method}</b> ${path}</code>
  </li>`;
}
