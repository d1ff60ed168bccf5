// The waterfall: the stages of a request on one axis of time.

import { html } from "../vendor/preact.js";
import { duration } from "./formats.js";
import { axisOf } from "./spans.js";

const MOST_LINES = 4;
const STEPS = [1, 2, 5];

/** `spans`: those of `spansOf`. `label`: what the list is called; without it, it is a drawing without figures. */
export function Waterfall({ spans, label }) {
  const axis = axisOf(spans);
  const share = (ms) => (100 * (Math.max(axis.from, ms) - axis.from)) / (axis.to - axis.from);
  const lines = linesOf(axis);
  return html`<figure class="waterfall" aria-label=${label} aria-hidden=${label ? null : "true"}>
    <ol>
      ${spans.map(
        ({ kind, title, from, to, note }, at) => html`<li key=${at} class=${`span-${kind}`}>
          <span class="span-title">${title}</span>
          <span class=${from < axis.from ? "span-line cut" : "span-line"} aria-hidden="true">
            ${lines.map((ms) => html`<b key=${ms} style=${{ left: `${share(ms)}%` }} />`)}
            <i style=${{ left: `${share(from)}%`, width: `${share(to) - share(from)}%` }} />
          </span>
          <span class="span-time">${label && duration(to - from)}</span>
          ${note && html`<small>${note}</small>`}
        </li>`,
      )}
    </ol>
    ${label && html`<p class="waterfall-axis" aria-hidden="true">
      ${lines.map((ms) => html`<span key=${ms} style=${{ left: `${share(ms)}%` }}>${ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`}</span>`)}
    </p>`}
  </figure>`;
}

/** Return the times at which the axis has lines, which are round numbers. */
function linesOf({ from, to }) {
  const power = 10 ** Math.floor(Math.log10((to - from) / MOST_LINES));
  const step = Math.max(1, power * (STEPS.find((each) => each * power * MOST_LINES >= to - from) ?? 10));
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, at) => (first + at) * step);
}
