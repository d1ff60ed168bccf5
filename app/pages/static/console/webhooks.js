// The inbox of webhooks: what platforms have reported, with the raw bodies, and their replay.

import { html, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { read } from "./api.js";
import { appFilter, List, stateFilter } from "./list.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Id, Note, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.webhooksPage;
const COLUMNS = [
  { id: "received", title: texts.received, sorts: true, of: (row) => html`<${Time} at=${row.received_at} />` },
  { id: "source", title: texts.source, of: (row) => html`<a href=${hrefOf(["money", "webhooks", row.webhook_id])}>${row.source}</a>` },
  { id: "status", title: texts.status, of: (row) => html`<${Badge} state=${row.status} />` },
  { id: "event", title: texts.event, of: (row) => html`<${Id} value=${row.event_id} />` },
  { id: "config", title: texts.config, of: (row) => row.config },
  { id: "app", title: TEXTS.list.app, of: (row) => row.app },
  { id: "error", title: texts.error, of: (row) => html`<span class="todo">${row.error}</span>` },
];

export const WebhookList = ({ route, apps }) => html`<${List} label=${texts.title} parts=${["money", "webhooks"]} route=${route} path="/webhooks" field="webhooks" columns=${COLUMNS}
  keyOf=${(row) => row.webhook_id} empty=${TEXTS.moneyPage.empty.webhooks} filters=${[
    appFilter(apps),
    { id: "source", title: texts.source, search: true },
    stateFilter(texts.status, ["received", "done", "failed"]),
  ]} />`;

function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

export function Webhook({ id, canEdit }) {
  const [replays, setReplays] = useState(0);
  const state = useLoaded(() => read(`/webhooks/${id}`), [id, replays]);
  const replay = ({ send }) => send("POST", `/webhooks/${id}/replay`, {});
  return html`<div><${Crumbs} steps=${[[TEXTS.money, hrefOf(["money"])], [texts.title, hrefOf(["money", "webhooks"])]]} />
    <${Loaded} state=${state}>${(found) => html`
      <header class="head"><h1>${found.source}</h1><${Badge} state=${found.status} />
        ${canEdit && html`<div class="actions"><${Action} title=${texts.replay} text=${texts.replayText} reason onRun=${replay} onDone=${() => setReplays(replays + 1)} /></div>`}</header>
      ${replays > 0 && html`<p class="good" role="status">${texts.replayed}</p>`}
      ${found.error && html`<${Note} tone="bad" title=${texts.failed}>${found.error}<//>`}
      <div class="panel"><${Facts} rows=${[
        [texts.received, html`<${Time} at=${found.received_at} />`], [texts.worked, found.worked_at && html`<${Time} at=${found.worked_at} />`],
        [texts.event, html`<${Id} value=${found.event_id} />`], [texts.delivery, found.delivery_id && html`<${Id} value=${found.delivery_id} />`],
        [texts.config, found.config], [TEXTS.list.app, found.app],
      ]} /></div>
      <h2>${texts.body}</h2>
      <pre tabindex="0" aria-label=${texts.body}>${pretty(found.body ?? found.body_base64)}</pre>
      <h2>${texts.headers}</h2>
      <div class="panel"><${Facts} rows=${Object.entries(found.headers)} /></div>`}<//></div>`;
}
