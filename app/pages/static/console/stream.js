// One stream: its events while they occur, its attempts at vendors as a waterfall, its receipt and what it cost.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { ApiError, read } from "./api.js";
import { watch } from "./events.js";
import { costOf } from "./formats.js";
import { Loaded, useLoaded } from "./loading.js";
import { Badge, Crumbs, Facts, Id, Time } from "./parts.js";
import { hrefOf } from "./route.js";
import { Answers, cancelPath } from "./streams.js";
import { Table } from "./table.js";
import { TEXTS } from "./texts.js";
import { UserLink } from "./users.js";

const texts = TEXTS.streamsPage;
const TONES = { won: "good", failed: "bad", running: "live" };
const EVERY_MS = 1_500;
const SHOWN = 300;
const SAID = 2_000;

/** Reads what the process of the stream knows and, once it has ended, what is stored. Either may be missing. */
async function load(path) {
  const unlessMissing = (error) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  };
  const live = await read(path, {}, { background: true }).catch(unlessMissing);
  const stored = live && !live.ended ? null : await read(`${path}/attempts`, {}, { background: true }).catch(unlessMissing);
  return { live, stored };
}

export function Stream({ route, canEdit, isAdmin }) {
  const [app, id] = route.parts;
  const path = `/streams/${encodeURIComponent(app)}/${encodeURIComponent(id)}`;
  const state = useLoaded(() => load(path), [app, id]);
  const runs = Boolean(state.value?.live && !state.value.live.ended);
  useEffect(() => {
    const timer = runs && setInterval(() => document.hidden || state.reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [runs]);
  return html`<div><${Crumbs} steps=${[[TEXTS.streams, hrefOf(["streams"])], [app]]} />
    <${Loaded} state=${state}>${({ live, stored }) => html`<${Shown} ...${{ app, id, path, live, stored, canEdit, isAdmin, reload: state.reload }} />`}<//></div>`;
}

function Shown({ app, id, path, live, stored, canEdit, isAdmin, reload }) {
  if (!live && !stored) return html`<header class="head"><h1>${texts.stream}</h1></header><p class="empty">${texts.gone}</p>`;
  const row = live?.stream ?? { app, user_id: stored.user_id, stream_id: id };
  const runs = live && !live.ended;
  const attempts = (runs ? live.attempts : stored?.attempts) ?? [];
  const answering = row.strategy ? row : attempts.findLast(({ stage, outcome }) => stage !== "stt" && outcome === "won");
  return html`<header class="head"><h1>${texts.kinds[row.kind ?? kindOf(attempts)] ?? texts.stream}</h1>
      <${Badge} tone=${runs ? "good" : ""} text=${runs ? texts.states[row.state] : texts.ended} />
      ${runs && canEdit && html`<div class="actions"><${Action} title=${texts.cancel} text=${texts.cancelText} reason danger onRun=${({ send }) => send("POST", cancelPath(row), {})} onDone=${reload} /></div>`}</header>
    <div class="panel"><${Facts} rows=${[
      [texts.user, html`<${UserLink} app=${app} user=${row.user_id} />`],
      [texts.stream, html`<${Id} value=${id} />`],
      [texts.answers, answering?.strategy && html`<${Answers} row=${answering} />`],
      [texts.began, html`<${Time} at=${live?.began_at ?? stored.began_at} />`],
      [texts.age, runs && texts.seconds(row.age_ms)],
      [texts.sent, live && `${texts.size(row.bytes)}, ${texts.characters(live.characters)}`],
      [texts.readers, runs && `${row.readers}`],
      [texts.lag, runs && texts.size(row.lag_bytes)],
      [texts.process, row.process && html`<${Id} value=${row.process} />`],
      [texts.request, row.request_id && html`<${Id} value=${row.request_id} />`],
      [texts.conversation, live?.conversation_id && html`<${Id} value=${live.conversation_id} />`],
    ].filter(([, value]) => value)} /></div>
    <h2>${texts.attempts}</h2>
    <${Waterfall} attempts=${attempts} currency=${stored?.currency} total=${live?.latency_ms.total ?? (runs ? row.age_ms : 0)} />
    ${live && html`<h2>${texts.receipt}</h2><div class="panel"><${Facts} rows=${Object.entries(texts.stages).map(([stage, title]) => [title, stage in live.latency_ms ? texts.seconds(live.latency_ms[stage]) : null])} /></div>
      <${Events} path=${path} ended=${live.ended} isAdmin=${isAdmin} onEnd=${reload} />`}`;
}

/** The kind of a stream of which only the attempts are known. */
function kindOf(attempts) {
  const stages = attempts.map(({ stage }) => stage);
  return stages.includes("assess") ? "pronunciation" : stages.includes("llm") || stages.includes("stt") ? "conversation" : stages.includes("tts") ? "tts" : "";
}

function Waterfall({ attempts, currency, total }) {
  const endOf = (row) => (row.started_ms ?? 0) + row.elapsed_ms;
  const most = Math.max(1, total, ...attempts.map(endOf));
  const columns = [
    { id: "stage", title: TEXTS.overviewPage.stage, of: (row) => TEXTS.overviewPage.stages[row.stage] ?? row.stage },
    { id: "strategy", title: texts.strategy, of: (row) => html`<${Answers} row=${row} />` },
    { id: "outcome", title: texts.outcome, of: (row) => html`<${Badge} tone=${row.outcome === "running" ? "waiting" : TONES[row.outcome] ?? ""} text=${texts.outcomes[row.outcome] ?? row.outcome} />` },
    { id: "time", title: texts.time, of: (row) => html`<span class="within"><${Bar} row=${row} most=${most} /></span>` },
    { id: "usage", title: TEXTS.trial.usage, number: true, of: (row) => texts.usage(row.input_unit, row.output_unit) },
    { id: "price", title: texts.price, number: true, of: (row) => (currency ? costOf(row.price, currency) : "–") },
    { id: "message", title: texts.why, of: (row) => row.message && html`<span class="todo">${row.message}</span>` },
  ];
  return html`<${Table} label=${texts.attempts} columns=${columns} rows=${attempts.map((row) => ({ ...row, key: row.number }))} empty=${texts.noAttempts} />`;
}

/** When an attempt began and ended within the stream, with a line at its first output. */
function Bar({ row, most }) {
  const part = (ms) => (ms / most) * 100;
  const start = row.started_ms ?? 0;
  const first = row.first_output_ms === undefined || row.first_output_ms === null ? null : part(start + row.first_output_ms);
  const said = [texts.bar(row.elapsed_ms, row.first_output_ms), row.started_ms ? texts.started(row.started_ms) : ""].filter(Boolean).join(", ");
  return html`<svg class=${`waterfall ${TONES[row.outcome] ?? ""}`} viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${said}>
    <rect class="back" width="100" height="10" /><rect x=${part(start)} width=${Math.max(0.8, part(row.elapsed_ms))} height="10" />
    ${first !== null && html`<rect class="first" x=${first} width=".8" height="10" />`}</svg><small class="muted" title=${said}>${texts.span(row.started_ms, row.elapsed_ms)}</small>`;
}

function Events({ path, ended, isAdmin, onEnd }) {
  const [seen, setSeen] = useState({ events: [], count: 0 });
  const [live, setLive] = useState(false);
  useEffect(() => {
    let after = 0;
    let over = ended;
    const keep = (event) => {
      after = event.id ?? after;
      over ||= event.name === "end" || event.name === "error";
      setSeen(({ events, count }) => ({ events: [...events, event].slice(-SHOWN), count: count + 1 }));
    };
    const finish = () => {
      if (!over) return false;
      setLive(false);
      onEnd();
      return true;
    };
    return watch(() => `/admin/api${path}/events?after=${after}`, keep, setLive, finish);
  }, [path]);
  return html`<h2>${texts.events} <${Badge} tone=${live ? "good" : ""} text=${live ? texts.live : ended ? texts.ended : texts.stopped} /></h2>
    ${!isAdmin && html`<p class="lead">${texts.private}</p>`}
    ${seen.count > SHOWN && html`<p class="muted">${texts.earlier(SHOWN)}</p>`}
    ${seen.events.length ? html`<ol class="log" aria-label=${texts.events} tabindex="0">${seen.events.map((event, index) => html`<li key=${seen.count - seen.events.length + index}>
      <span class="number">${event.id}</span><time datetime=${new Date(event.at_ms).toISOString()}>${timeOf(event.at_ms)}</time>
      <span class="name">${event.name}</span><span class="number">${texts.size(event.bytes)}</span>
      ${"content" in event && html`<span class="said">${saidIn(event.content)}</span>`}</li>`)}</ol>` : html`<p class="empty">${texts.noEvents}</p>`}`;
}

const timeOf = (ms) => `${new Date(ms).toLocaleTimeString("en-GB")}.${String(ms % 1_000).padStart(3, "0")}`;
const saidIn = (content) => (typeof content === "string" ? content : content?.text ?? JSON.stringify(content)).slice(0, SAID);
