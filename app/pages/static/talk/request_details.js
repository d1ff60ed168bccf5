// Details of a request: its events, latency and attempts, and the equivalent curl command.

import { html } from "../vendor/preact.js";
import { IconButton } from "./icons.js";
import { Command, quoted } from "./command.js";

const SESSION_HEADER = "x-service-session-token";
const KEY_HEADER = "idempotency-key";
const SHOWN_ENTRIES = 3; // maximum number of list entries shown per event

const DIGESTS = { matches: "✓ Integrity verified", differs: "✗ The answer was altered on its way" };
const STAGES = {
  admission: "admitted",
  input: "input complete",
  stt: "speech recognized",
  first_token: "first token",
  first_text: "first text",
  first_sentence: "first sentence",
  first_audio: "first audio",
  total: "end",
};

/**
 * The panel "Look inside". `run`: `{request, streamId, events, resumed, digest}`, or null before the first request.
 * `children`: what is shown above the events.
 */
export function RequestDetails({ run, onClose, children }) {
  return html`
    <aside class="inside" id="inside" aria-label="Look inside">
      <header>
        <h2>Look inside</h2>
        <${IconButton} icon="close" label="Close this panel" onAct=${onClose} />
      </header>
      <div class="inside-content">${run ? html`<${Run} run=${run}>${children}<//>` : html`<${Nothing} />`}</div>
    </aside>
  `;
}

const Nothing = () => html`
  <p class="muted">Send a message. Its events, the latency of each stage and the calls to vendors appear here.</p>
`;

function Run({ run, children }) {
  const end = contentOf(run, "end");
  return html`
    <${Attempts} run=${run} end=${end} />
    ${end?.latency_ms && html`<${Latency} latency=${end.latency_ms} />`}
    ${children}
    <section>
      <h3>Stream</h3>
      <p class="facts">
        ${run.streamId && html`<code>${run.streamId}</code>`}
        ${run.digest && html`<strong class=${`digest-${run.digest}`}>${DIGESTS[run.digest]}</strong>`}
        ${run.resumed.length > 0 && html`<span>${resumedLine(run.resumed)}</span>`}
      </p>
    </section>
    <${Events} run=${run} />
    <${Curl} request=${run.request} />
  `;
}

const contentOf = (run, name) => run.events.findLast((event) => event.name === name)?.content;

const resumedLine = (ids) =>
  `Resumed ${ids.length === 1 ? "once" : `${ids.length} times`}, after event ${ids.join(", ")}`;

/** `latency` has milliseconds from the arrival of the request to the end of each stage. */
function Latency({ latency }) {
  const marks = Object.entries(latency).filter(([stage]) => stage in STAGES);
  marks.sort(([, one], [, other]) => one - other);
  const stages = marks.map(([stage, ms], at) => ({ stage, ms, from: marks[at - 1]?.[1] ?? 0 }));
  const total = Math.max(1, stages.at(-1)?.ms ?? 1);
  return html`
    <figure class="latency" aria-labelledby="latency-title">
      <figcaption id="latency-title"><h3>Latency</h3></figcaption>
      <ol>
        ${stages.map(
          ({ stage, ms, from }) => html`
            <li>
              <span>${STAGES[stage]}</span>
              <span class="latency-line" aria-hidden="true">
                <i class=${`stage-${stage}`} style=${{ left: `${(100 * from) / total}%`, width: `${(100 * (ms - from)) / total}%` }} />
              </span>
              <span>${ms} ms</span>
            </li>
          `,
        )}
      </ol>
      ${"overhead" in latency && html`<p class="muted">The server itself took ${latency.overhead} ms of the time before the first output.</p>`}
    </figure>
  `;
}

function Attempts({ run, end }) {
  const failed = contentOf(run, "error")?.error.extra?.attempts ?? end?.attempts ?? [];
  const lines = failed.map(({ strategy, stage, message, elapsed_ms }) => ({
    mark: "failed",
    text: `${strategy} (${stage}) failed after ${elapsed_ms} ms: ${message}`,
  }));
  if (run.events.some(({ name }) => name === "assistant_output_restart")) {
    lines.push({ mark: "failed", text: "an answer broke off, and another strategy started over" });
  }
  if (end?.strategy) lines.push({ mark: "won", text: `${end.strategy} answered` });
  if (end?.speech) {
    lines.push({ mark: "failed", text: `speech failed at paragraph ${end.speech.index + 1}: ${end.speech.message}` });
  }
  if (lines.length === 0) return null;
  return html`
    <section>
      <h3 id="attempts-title">Attempts</h3>
      <ol class="attempts" aria-labelledby="attempts-title">
        ${lines.map(({ mark, text }) => html`<li class=${`attempt-${mark}`}>${text}</li>`)}
      </ol>
    </section>
  `;
}

function Events({ run }) {
  return html`
    <h3 id="events-title">Events</h3>
    <div class="details-table" role="region" aria-label="List of events" tabindex="0">
      <table aria-labelledby="events-title">
        <thead>
          <tr>${["Id", "After", "Event", "Content"].map((title) => html`<th scope="col">${title}</th>`)}</tr>
        </thead>
        <tbody>
          ${run.events.map(
            ({ id, name, at_ms, content }) => html`
              <tr class=${run.resumed.includes(id) ? "resumed" : ""}>
                <td>${id ?? "none"}</td>
                <td>${Math.round(at_ms)} ms</td>
                <td>${name}</td>
                <td><code>${JSON.stringify(content, shortenedValue)}</code></td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function shortenedValue(key, value) {
  if (key === "audio" && typeof value === "string") return `${Math.floor((value.length * 3) / 4)} bytes`;
  if (Array.isArray(value) && value.length > SHOWN_ENTRIES) {
    return [...value.slice(0, SHOWN_ENTRIES), `and ${value.length - SHOWN_ENTRIES} more`];
  }
  return value;
}

function Curl({ request }) {
  const spoken = request.parameters?.type === "audio";
  return html`
    <h3>Request</h3>
    <${Command}
      text=${curlLine(request)}
      label="The request as curl"
      note=${spoken && "Put your audio, in base64, after the parameters."}
    />
  `;
}

/** Return the request as a curl command, with the session token in the shell variable SESSION. */
export function curlLine({ method, url, headers = {}, parameters, text }) {
  const body = parameters && JSON.stringify(parameters) + (text ?? "");
  const isDefaultMethod = method === (body ? "POST" : "GET");
  const lines = [`curl -N ${isDefaultMethod ? "" : `-X ${method} `}${quoted(new URL(url, location.href).href)}`];
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() === KEY_HEADER) continue; // Otherwise the server would return the stream of the original request.
    const secret = name.toLowerCase() === SESSION_HEADER;
    lines.push(`-H ${secret ? `"${name}: $SESSION"` : quoted(`${name}: ${value}`)}`);
  }
  if (body) lines.push(`--data-binary ${quoted(body)}`);
  return lines.join(" \\\n  ");
}
