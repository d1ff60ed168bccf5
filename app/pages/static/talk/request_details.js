// Details of a request: its events, latency and attempts, and the equivalent curl command.

import { html, useState } from "../vendor/preact.js";
import { Command, quoted } from "./command.js";

const SESSION_HEADER = "x-service-session-token";
const KEY_HEADER = "idempotency-key";
const SHOWN_ENTRIES = 3; // maximum number of list entries shown per event

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

/** `run`: `{request, streamId, events, resumed, digest}`, or null before the first request. */
export function RequestDetails({ run }) {
  const [open, setOpen] = useState(false);
  return html`
    <details class="details" onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>Look inside</summary>
      ${open && (run ? html`<${Run} run=${run} />` : html`<p>No request has been sent yet.</p>`)}
    </details>
  `;
}

function Run({ run }) {
  const end = contentOf(run, "end");
  return html`
    <p class="details-facts">
      ${run.streamId && html`<span>Stream <code>${run.streamId}</code></span>`}
      ${run.resumed.length > 0 && html`<span>${resumedLine(run.resumed)}</span>`}
      ${run.digest && html`<strong class=${`digest-${run.digest}`}>Digest ${run.digest}</strong>`}
    </p>
    ${end?.latency_ms && html`<${Latency} latency=${end.latency_ms} />`}
    <${Attempts} run=${run} end=${end} />
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
  const stages = marks.map(([stage, ms], at) => ({ stage, ms, length: ms - (marks[at - 1]?.[1] ?? 0) }));
  return html`
    <figure class="latency" aria-labelledby="latency-title">
      <figcaption class="details-title" id="latency-title">Latency</figcaption>
      <div class="latency-bar" aria-hidden="true">
        ${stages.map(({ stage, length }) => html`<i class=${`stage-${stage}`} style=${{ flexGrow: length }} />`)}
      </div>
      <ol>
        ${stages.map(
          ({ stage, ms, length }) => html`
            <li><i class=${`stage-${stage}`} aria-hidden="true" />${STAGES[stage]}: ${ms} ms (+${length})</li>
          `,
        )}
      </ol>
      ${"overhead" in latency && html`<p>Server overhead before the first output: ${latency.overhead} ms</p>`}
    </figure>
  `;
}

function Attempts({ run, end }) {
  const failed = contentOf(run, "error")?.error.extra?.attempts ?? end?.attempts ?? [];
  const lines = failed.map(
    ({ strategy, stage, message, elapsed_ms }) => `${strategy} (${stage}) failed after ${elapsed_ms} ms: ${message}`,
  );
  if (run.events.some(({ name }) => name === "assistant_output_restart")) {
    lines.push("an answer broke off, and another strategy started over");
  }
  if (end?.strategy) lines.push(`${end.strategy} answered`);
  if (end?.speech) lines.push(`speech failed at paragraph ${end.speech.index + 1}: ${end.speech.message}`);
  if (lines.length === 0) return null;
  return html`
    <p class="details-title" id="attempts-title">Attempts</p>
    <ol aria-labelledby="attempts-title">${lines.map((line) => html`<li>${line}</li>`)}</ol>
  `;
}

/** Return the JSON object at the start of a body that continues with text or audio. */
function parametersOf(body) {
  for (let at = body?.indexOf("}") ?? -1; at >= 0; at = body.indexOf("}", at + 1)) {
    try {
      return JSON.parse(body.slice(0, at + 1));
    } catch {
      // This brace closed an inner object.
    }
  }
  return {};
}

function Events({ run }) {
  return html`
    <p class="details-title" id="events-title">Events</p>
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
  const spoken = parametersOf(request.body).type === "audio";
  return html`
    <p class="details-title">Request</p>
    <${Command}
      text=${curlLine(request)}
      label="The request as curl"
      note=${spoken && "The audio is shortened here. Replace it with your own."}
    />
  `;
}

/** Return the request as a curl command, with the session token in the shell variable SESSION. */
export function curlLine({ method, url, headers = {}, body }) {
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
