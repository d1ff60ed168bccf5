// Tabs, selected with the pointer or the arrow keys. The panel of a tab has the id `panel-…` of the tab's id.

import { html, useRef } from "../vendor/preact.js";

/** `tabs`: `[{id, title}]`. `label`: what they select. */
export function TabList({ tabs, shown, onShow, label = "Features" }) {
  const list = useRef(null);

  const onKeyDown = (event) => {
    const at = tabs.findIndex(({ id }) => id === shown);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const { id } = tabs[(to + tabs.length) % tabs.length];
    onShow(id);
    list.current.querySelector(`#tab-${id}`).focus();
  };

  return html`
    <div role="tablist" aria-label=${label} ref=${list} onKeyDown=${onKeyDown}>
      ${tabs.map(
        ({ id, title }) => html`<button
          key=${id}
          type="button"
          role="tab"
          id=${`tab-${id}`}
          aria-controls=${`panel-${id}`}
          aria-selected=${id === shown ? "true" : "false"}
          tabindex=${id === shown ? 0 : -1}
          onClick=${() => onShow(id)}
        >
          <span data-title=${title}>${title}</span>
        </button>`,
      )}
    </div>
  `;
}
