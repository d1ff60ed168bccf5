// The events of a request: when each arrived, how large it was and, with one click, its JSON.

import { Component, html, useState } from "../vendor/preact.js";
import { CopyButton } from "./copy.js";
import { duration, number, size } from "./formats.js";

const NEWEST = 200; // Answers may have thousands of events.
const SHOWN_BASE64 = 24;
const HIDDEN_KEYS = new Set(["audio"]);

export function Events({ record }) {
  const [name, setName] = useState("");
  const [all, setAll] = useState(false);
  const events = name === "" ? record.events : record.events.filter((event) => event.name === name);
  const shown = all ? events : events.slice(-NEWEST);
  const bytes = record.events.reduce((sum, event) => sum + event.bytes, 0);
  return html`<section class="events">
    <div class="events-head">
      <label>
        Show
        <select value=${name} onChange=${(event) => setName(event.currentTarget.value)}>
          <option value="">All events (${number(record.events.length)})</option>
          ${countsOf(record).map(([each, count]) => html`<option key=${each} value=${each}>${each} (${number(count)})</option>`)}
        </select>
      </label>
      <${CopyButton} label="Copy as JSON" textOf=${() => JSON.stringify(events.map(plain), null, 2)} />
    </div>
    <p class="muted">${number(record.events.length)} events, ${size(bytes)} in ${duration(record.elapsed_ms)}</p>
    ${shown.length < events.length &&
    html`<p>
      The newest ${NEWEST} are shown. <button type="button" class="quiet small" onClick=${() => setAll(true)}>Show all ${number(events.length)}</button>
    </p>`}
    <ol class="event-rows" aria-label="Events">
      ${shown.map((event) => html`<${EventRow} key=${event.key} event=${event} gap=${gapBefore(record, event)} />`)}
    </ol>
  </section>`;
}

/** A row is drawn once, and again only if it is opened: the page draws after each of many events. */
class EventRow extends Component {
  state = { open: false };

  shouldComponentUpdate({ event }, { open }) {
    return event !== this.props.event || open !== this.state.open;
  }

  render({ event, gap }, { open }) {
    const { id, name, at_ms, bytes, content } = event;
    return html`<li>
      ${gap && html`<p class="event-gap">Disconnected for ${duration(gap.open_ms - gap.lost_ms)}. ${gap.after > 0 ? `Resumed after event ${gap.after}.` : "Sent again."}</p>`}
      <button type="button" class="event" aria-expanded=${open ? "true" : "false"} onClick=${() => this.setState({ open: !open })}>
        <span class="event-id">${id ?? "–"}</span>
        <span class="event-name">${breakable(name)}</span>
        <span class="event-time">${duration(at_ms)}</span>
        <span class="event-size">${size(bytes)}</span>
      </button>
      ${open && html`<pre class="code" tabindex="0" role="region" aria-label=${`Content of ${name}`}><code>${JSON.stringify(content, shortened, 2)}</code></pre>
        <${CopyButton} label="Copy content" textOf=${() => JSON.stringify(content, null, 2)} />`}
    </li>`;
  }
}

/** Return the connection that was lost before this event, if it is the first after a resume. */
const gapBefore = (record, event) => record.gaps.find(({ open_ms, after }) => open_ms !== null && event.id === after + 1);

function countsOf(record) {
  const counts = new Map();
  for (const { name } of record.events) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([one], [other]) => one.localeCompare(other));
}

/** A name that may be broken after its underscores, but nowhere else. */
const breakable = (name) => name.split("_").map((part, at) => (at === 0 ? part : html`_<wbr />${part}`));

const plain = ({ id, name, at_ms, content }) => ({ id, event: name, at_ms, content });

function shortened(key, value) {
  if (!HIDDEN_KEYS.has(key) || typeof value !== "string") return value;
  return `${value.slice(0, SHOWN_BASE64)}… (${number(Math.floor((value.length * 3) / 4))} bytes)`;
}
