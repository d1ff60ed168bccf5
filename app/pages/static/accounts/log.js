// The list of requests and responses, the newest first.

import { html } from "../vendor/preact.js";
import { Command } from "./command.js";
import { curlOf, outcome, succeeded } from "./exchanges.js";

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null|-?\d+(?:\.\d+)?)\b/g;

/** `next`: the request that the page would send now, which is shown before there is any. */
export function Log({ accounts, next = null }) {
  const { list } = accounts.exchanges;
  const newest = list.find(({ aside }) => !aside);
  return html`<section class="log" aria-labelledby="log-title">
    <h2 id="log-title">Requests</h2>
    ${list.length === 0 &&
    html`<p class="muted">Each request is shown here with its response, and as a curl line that you can copy.</p>`}
    ${list.length === 0 && next && html`<${Next} request=${next} />`}
    ${list.map((one) => html`<${Exchange} key=${one.id} exchange=${one} open=${one === newest} accounts=${accounts} />`)}
  </section>`;
}

function Next({ request }) {
  const { name, method, path } = request;
  return html`<section class="exchange next" aria-label="Next request">
    <p><span class="badge">next</span> <code>${method} ${path}</code> <small>${name}</small></p>
    <${Command} text=${curlOf(request)} label=${`${name} as curl`} />
  </section>`;
}

function Exchange({ exchange, open, accounts }) {
  const { name, method, path, status, answer, tookMs, proof, body } = exchange;
  const state = status === null ? "waiting" : succeeded(exchange) ? "good" : "bad";
  return html`<details class=${`exchange exchange-${state}`} open=${open}>
    <summary>
      <span class="badge">${status || "–"}</span>
      <code>${method} ${path.replace(/\?.*/, "")}</code>
      <small>${name}${tookMs === undefined ? "" : `, ${tookMs} ms`}</small>
    </summary>
    <p class="outcome">${outcome(exchange)}</p>
    <${Command} text=${curlOf(exchange)} label=${`${name} as curl`}>
      <button type="button" class="quiet small" onClick=${() => accounts.repeat(exchange)}>Send again</button>
    <//>
    ${proof && html`<details class="sent"><summary>Request body</summary><${Json} value=${body} label="Body" /></details>`}
    ${status > 0 &&
    html`<h4>Response</h4>
      <${Json} value=${answer} label="Response" />`}
  </details>`;
}

function Json({ value, label }) {
  if (value === null) return html`<p class="muted">No body</p>`;
  const text = JSON.stringify(value, null, 2);
  return html`<pre class="json" tabindex="0" role="region" aria-label=${label}><code>${colored(text)}</code></pre>`;
}

/** Return the parts of a JSON text, in which names, texts and other values have classes. */
function colored(text) {
  const parts = [];
  let end = 0;
  for (const { 0: token, 1: string, 2: colon, index } of text.matchAll(TOKEN)) {
    const kind = colon ? "name" : string ? "text" : "value";
    const shown = colon ? string : token;
    parts.push(text.slice(end, index), html`<span class=${`json-${kind}`}>${shown}</span>`);
    end = index + shown.length;
  }
  return [...parts, text.slice(end)];
}
