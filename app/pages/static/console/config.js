// One config: its form, its JSON and its history. Saving shows the changes first.

import { html, useEffect, useState } from "../vendor/preact.js";
import { configPath, read, write } from "./api.js";
import { configHref, State } from "./configs.js";
import { Fields, Json } from "./fields.js";
import { Changes, History } from "./history.js";
import { Loaded, useLoaded } from "./loading.js";
import { differencesOf } from "./schema.js";
import { download } from "./table.js";
import { TEXTS } from "./texts.js";
import { TRIALS } from "./trial.js";

const VALIDATE_MS = 300;
const COPIED = "parley-copied-config";
const texts = TEXTS.config;

async function load(key) {
  const kinds = await read("/kinds");
  const kind = kinds.kinds.find((row) => row.kind === key.kind);
  try {
    return { kind, config: await read(configPath(key)) };
  } catch (error) {
    if (error.status !== 404 || !kind) throw error;
    return { kind, config: { ...key, revision: 0, value: {}, isNew: true } };
  }
}

export function Config({ route, canEdit }) {
  const [app, kind, name] = route.parts;
  const key = { app, kind, name };
  const [saves, setSaves] = useState(0);
  const state = useLoaded(() => load(key), [app, kind, name, saves]);
  return html`<${Loaded} state=${state}>${(found) => html`
    ${saves > 0 && html`<p class="good" role="status">${texts.saved(found.config.revision)}</p>`}
    <${Editor} key=${found.config.revision} canEdit=${canEdit} ...${found} onSaved=${() => setSaves(saves + 1)} />`}<//>`;
}

function Editor({ kind, config, canEdit, onSaved }) {
  const [copied] = useState(() => (config.isNew ? sessionStorage.getItem(COPIED) : null));
  const [value, setValue] = useState(copied ? JSON.parse(copied) : config.value);
  const [tab, setTab] = useState("form");
  const [faults, setFaults] = useState([]);
  const [imported, setImported] = useState(0);
  const changes = differencesOf(config.value, value);
  useEffect(() => {
    sessionStorage.removeItem(COPIED);
    if (!canEdit || (!changes.length && !config.isNew)) return setFaults([]);
    let current = true;
    const timer = setTimeout(async () => {
      const judged = await write("POST", `${configPath(config)}/validate`, { value }).catch(() => null);
      if (current && judged) setFaults([...judged.errors, ...judged.warnings]);
    }, VALIDATE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [value]);
  const replace = (next) => {
    setValue(next);
    setImported(imported + 1);
  };
  const form = { defs: kind.schema.$defs ?? {}, faults, readOnly: !canEdit };
  const known = kind.schema.properties !== undefined;
  const views = {
    form: () => known
      ? html`<fieldset class="top" disabled=${!canEdit}><${Fields} schema=${kind.schema} value=${value} path="" form=${form} onChange=${setValue} /></fieldset>`
      : html`<${Raw} value=${value} canEdit=${canEdit} onChange=${setValue} />`,
    json: () => html`<${Raw} value=${value} canEdit=${canEdit} onChange=${setValue} />`,
    history: () => html`<${History} config=${config} canEdit=${canEdit} onSaved=${onSaved} />`,
    try: () => html`<${TRIALS[config.kind]} config=${config} value=${value} />`,
  };
  const tabs = ["form", "json", ...(canEdit && config.kind in TRIALS ? ["try"] : []), ...(config.isNew ? [] : ["history"])];
  return html`<div>
    <p class="crumbs"><a href="#/configs">${TEXTS.configs}</a> / ${config.app} / ${kind.title}</p>
    <header class="head">
      <h1>${config.name}</h1>
      ${!config.isNew && html`<${State} row=${config} />`}
      <${Transfer} config=${config} value=${value} canEdit=${canEdit} onImport=${replace} />
    </header>
    ${config.fault && html`<p class="error">${config.fault}</p>`}
    ${!canEdit && html`<p class="muted">${texts.readOnly}</p>`}
    <nav class="tabs" aria-label=${config.name}>
      ${tabs.map((id) => html`<button key=${id} class="plain"
        aria-current=${id === tab ? "true" : null} onClick=${() => setTab(id)}>${id === "try" ? TEXTS.trial.tab : texts[id]}</button>`)}
    </nav>
    <div key=${`${tab} ${imported}`}>${views[tab]()}</div>
    ${faults.filter(({ path }) => path === "").map((fault) => html`<p class="error">${fault.message}</p>`)}
    ${canEdit && tab !== "history" && html`<${Save} config=${config} value=${value} changes=${changes} onSaved=${onSaved} />`}</div>`;
}

const Raw = ({ value, canEdit, onChange }) => html`<label for="raw">${texts.json}</label>
  <${Json} value=${value} onChange=${(next) => onChange(next ?? {})} attributes=${{ id: "raw", disabled: !canEdit }} />`;

function Save({ config, value, changes, onSaved }) {
  const [reviewing, setReviewing] = useState(false);
  const [comment, setComment] = useState("");
  const [error, setError] = useState("");
  const save = async (event) => {
    event.preventDefault();
    setError("");
    const headers = config.isNew ? {} : { "If-Match": String(config.revision) };
    try {
      await write("PUT", configPath(config), { value, comment }, headers);
      onSaved();
    } catch (failure) {
      setError(failure.message);
    }
  };
  const nothing = !changes.length && !config.isNew;
  if (!reviewing || nothing)
    return html`<div class="bar"><button disabled=${nothing} onClick=${() => setReviewing(true)}>${texts.review}</button>
      ${nothing && html`<span class="muted">${texts.unchanged}</span>`}</div>`;
  return html`<section aria-labelledby="changes" ref=${showIt}><h2 id="changes">${texts.changes}</h2><${Changes} changes=${changes} /></section>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <form class="bar" onSubmit=${save}>
      <label>${texts.comment}<input maxlength="500" value=${comment} onInput=${(event) => setComment(event.currentTarget.value)} /></label>
      <button>${texts.save}</button>
      <button type="button" class="quiet" onClick=${() => setReviewing(false)}>${TEXTS.cancel}</button>
    </form>`;
}

const showIt = (section) => section?.scrollIntoView({ block: "center" });

function Transfer({ config, value, canEdit, onImport }) {
  const apps = useLoaded(() => read("/configs", { kind: "apps" }), []);
  const others = (apps.value?.configs ?? []).map((row) => row.app).filter((app) => app !== config.app);
  const upload = async (event) => {
    const text = await event.currentTarget.files[0].text();
    try {
      onImport(JSON.parse(text));
    } catch {
      alert(texts.badJson);
    }
  };
  const copy = (event) => {
    sessionStorage.setItem(COPIED, JSON.stringify(value));
    const target = { ...config, app: event.currentTarget.value };
    if (target.app) location.hash = configHref(target);
  };
  const name = `${config.app}-${config.kind}-${config.name}.json`;
  return html`<div class="actions">
    <button class="quiet small" onClick=${() => download(name, "application/json", JSON.stringify(value, null, 2))}>${texts.download}</button>
    ${canEdit && html`<label class="upload">${texts.upload}<input type="file" accept="application/json" onChange=${upload} /></label>`}
    ${canEdit && others.length > 0 && html`<select aria-label=${texts.copy} onChange=${copy}>
      <option value="">${texts.copy}</option>${others.map((app) => html`<option key=${app}>${app}</option>`)}</select>`}
  </div>`;
}
