// The panel "Look inside": how a request went, why parts of it failed, its events, and the code to repeat it.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { IconButton } from "../talk/icons.js";
import { TabList } from "../talk/tabs.js";
import { Attempts, Reason } from "./attempts.js";
import { Code } from "./code.js";
import { Events } from "./events.js";
import { EXAMPLE } from "./example.js";
import { duration, number } from "./formats.js";
import { spansOf, waitsOf } from "./spans.js";
import { Usage } from "./usage.js";
import { Waterfall } from "./waterfall.js";

const TICK_MS = 200;
const DIGESTS = { matches: "✓ Integrity verified", differs: "✗ The answer was altered on its way" };
const SHOWN_ID = 12;

/**
 * `records`: the `TurnRecord`s of the turns, oldest first. `chosen`: the key of the one to show, or null for the latest.
 * `app`, `consoleUrl`: for links to the console, if it is offered; else `consoleUrl` is null. `tools(tab)`: what is shown
 * below the tab "overview", "events" or "code".
 */
export function Inside({ records, chosen, onChoose, onClose, app, consoleUrl = null, tools }) {
  const record = records.find(({ key }) => key === chosen) ?? records.at(-1) ?? null;
  const count = useRef(records.length);
  useEffect(() => {
    if (records.length !== count.current) onChoose(null); // A new turn is shown.
    count.current = records.length;
  }, [records.length]);
  return html`
    <aside class="inside" id="inside" aria-label="Look inside" onKeyDown=${({ key }) => key === "Escape" && onClose()}>
      <header>
        <h2>Look inside</h2>
        ${records.length > 1 && html`<${Turns} records=${records} record=${record} onChoose=${onChoose} />`}
        <${IconButton} icon="close" label="Close this panel" onAct=${onClose} />
      </header>
      ${record
        ? html`<${Shown} key=${record.key} record=${record} app=${app} consoleUrl=${consoleUrl} tools=${tools} />`
        : html`<${Nothing} />`}
    </aside>
  `;
}

const Nothing = () => html`<div class="inside-content">
  <h3>An example</h3>
  <div class="inside-example"><${Waterfall} spans=${EXAMPLE} /></div>
  <p class="inside-empty">
    <strong>See what happens in a turn.</strong> Say or type something: the time of each stage, the calls to vendors, all
    events and the code of the request appear here.
  </p>
</div>`;

function Turns({ records, record, onChoose }) {
  const at = records.indexOf(record);
  const step = (by) => () => onChoose(records[at + by].key);
  return html`<div class="inside-turns" role="group" aria-label="Turns">
    <button type="button" class="quiet small" aria-label="Earlier turn" aria-disabled=${at === 0 ? "true" : null} onClick=${at > 0 && step(-1)}>‹</button>
    <span title=${record.said}>${at + 1} of ${records.length}</span>
    <button type="button" class="quiet small" aria-label="Later turn" aria-disabled=${at === records.length - 1 ? "true" : null} onClick=${at < records.length - 1 && step(1)}>›</button>
  </div>`;
}

function Shown({ record, app, consoleUrl, tools }) {
  const [tab, setTab] = useState("overview");
  const drawn = useClock(record.running);
  useEffect(() => {
    if (record.fault) setTab("overview"); // The reason must be in sight.
  }, [record.fault]);
  const view = useMemo(
    () => html`<${View} record=${record} tab=${tab} onTab=${setTab} app=${app} consoleUrl=${consoleUrl} />`,
    [record, tab, drawn, record.running], // The page draws after each event, but nobody can read that fast.
  );
  return html`${view}<footer class="inside-tools" aria-label="Tools">${tools(tab)}</footer>`;
}

function View({ record, tab, onTab, app, consoleUrl }) {
  const content = useRef(null);
  useLayoutEffect(() => {
    content.current.scrollTop = 0; // It is one element for all tabs.
  }, [tab]);
  const tabs = [
    { id: "overview", title: "Overview" },
    { id: "events", title: `Events ${number(record.events.length)}` },
    { id: "code", title: "Code" },
  ];
  return html`
    <div class="inside-tabs"><${TabList} label="Views" tabs=${tabs} shown=${tab} onShow=${onTab} /></div>
    <div class="inside-content" ref=${content} role="tabpanel" id=${`panel-${tab}`} aria-labelledby=${`tab-${tab}`} tabindex="0">
      ${tab === "overview" && html`<${Overview} record=${record} app=${app} consoleUrl=${consoleUrl} />`}
      ${tab === "events" && html`<${Events} record=${record} />`}
      ${tab === "code" && html`<${Code} record=${record} />`}
    </div>
  `;
}

function Overview({ record, app, consoleUrl }) {
  const inConsole = (...parts) => consoleUrl && `${consoleUrl}#/${parts.map(encodeURIComponent).join("/")}`;
  const { end, fault, running } = record;
  const overhead = end?.latency_ms?.overhead;
  return html`
    <p class="inside-said">${titleOf(record)}</p>
    <dl class="times" aria-label="Times">
      ${waitsOf(record).map(
        ({ title, ms }) => html`<div key=${title}>
          <dt>${title}</dt>
          <dd>${ms === undefined ? html`<span class="muted">${running ? "…" : "none"}</span>` : duration(ms)}</dd>
        </div>`,
      )}
    </dl>
    ${record.isSpoken && html`<p class="muted">First word and first sound are counted from the end of the upload.</p>`}
    ${fault && fault.extra?.attempts === undefined && html`<${Reason} failure=${fault} />`}
    <section>
      <h3>Timeline</h3>
      <${Waterfall} spans=${spansOf(record)} label="Timeline" />
      ${overhead !== undefined && html`<p class="muted">The server itself took ${duration(overhead)} of the time before the first output.</p>`}
    </section>
    <${Attempts} record=${record} configUrl=${(strategy) => inConsole("configs", app, "conversation", strategy)} />
    <${Usage} record=${record} streamUrl=${record.streamId && inConsole("streams", app, record.streamId)} />
    <${Stream} record=${record} />
  `;
}

function titleOf({ said, request, running, end }) {
  if (said) return said;
  if (end?.finish_reason === "canceled") return "Interrupted before it was recognized";
  if (request.method === "GET") return "A resumed answer";
  return running ? "…" : "Not recognized";
}

function Stream({ record: { streamId, digest, resumed, end } }) {
  if (streamId === null) return null;
  const compared = digest && end.digest.chars > 0; // There is nothing to verify in an answer without text.
  return html`<section>
    <h3>Stream</h3>
    <p class="facts">
      <code title=${streamId}>${streamId.slice(0, SHOWN_ID)}…</code>
      ${compared && html`<strong class=${`digest-${digest}`}>${DIGESTS[digest]}</strong>`}
      ${resumed.length > 0 && html`<span>Resumed ${resumed.length === 1 ? "once" : `${resumed.length} times`}, after event ${resumed.join(", ")}</span>`}
    </p>
  </section>`;
}

/** Draw again a few times a second while `runs`. Return the number of these drawings. */
function useClock(runs) {
  const [drawn, draw] = useState(0);
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(() => draw((before) => before + 1), TICK_MS);
    return () => clearInterval(timer);
  }, [runs]);
  return drawn;
}
