// What needs the attention of an operator: a line for each cause, with a link to the page where one acts.

import { html } from "../vendor/preact.js";
import { hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.attention;
const only = ({ count, names }) => (count === 1 && names.length === 1 ? names[0].split("/") : null);
const PAGES = {
  store: () => hrefOf(["operations"]),
  worker: () => hrefOf(["jobs", "schedules"]),
  silent_process: () => hrefOf(["operations"]),
  versions: () => hrefOf(["operations"]),
  config: (row) => (only(row) ? hrefOf(["configs", ...only(row)]) : hrefOf(["configs"])),
  breaker: () => hrefOf(["configs"], { kind: "vendor_accounts" }),
  vendor: () => hrefOf(["streams", "ended"]),
  mismatch: () => hrefOf(["money", "mismatches"], { resolved: "false" }),
  webhook: () => hrefOf(["money", "webhooks"], { status: "failed" }),
  mail: ({ names }) => hrefOf(["jobs", "held"], { job: names[0] }),
  job: ({ names }) => hrefOf(["jobs", "held"], names.length === 1 ? { job: names[0] } : {}),
  sink: () => hrefOf(["engagement", "sinks"], { status: "dead" }),
};

export function Attention({ rows }) {
  if (!rows.length) return html`<p class="good" role="status">${texts.calm}</p>`;
  return html`<section class="attention" aria-labelledby="attention">
    <h2 id="attention">${texts.title}</h2>
    <ul class="plain">${rows.map((row) => html`<li key=${row.what}><a href=${PAGES[row.what]?.(row) ?? hrefOf(["operations"])}>
      <strong>${texts.needs[row.what]?.(row) ?? row.what}</strong><small>${texts.means[row.what]?.(row)}</small></a></li>`)}</ul>
  </section>`;
}
