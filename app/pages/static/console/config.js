// One config: its form, its JSON, its trial and its history. What is not saved yet stays in the browser tab.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { configPath, read, write } from "./api.js";
import { orderHref, State } from "./configs.js";
import { DeleteConfig } from "./delete_config.js";
import { draftOf, forgetDraft, keepDraft } from "./drafts.js";
import { Form } from "./form.js";
import { History } from "./history.js";
import { JsonEditor } from "./json_editor.js";
import { Loaded, useLoaded } from "./loading.js";
import { Note } from "./parts.js";
import { namesIn } from "./references.js";
import { Faults, Save } from "./save.js";
import { differencesOf, withoutSecrets } from "./schema.js";
import { TEXTS } from "./texts.js";
import { Transfer } from "./transfer.js";
import { TRIALS } from "./trial.js";

const VALIDATE_MS = 300;
const STRATEGIES = ["conversation", "speech"];
const texts = TEXTS.config;
const forms = TEXTS.configForm;

async function load(key) {
  const kinds = await read("/kinds");
  const kind = kinds.kinds.find((row) => row.kind === key.kind);
  try {
    return { kind, config: await read(configPath(key)) };
  } catch (error) {
    if (error.status !== 404 || !kind) throw error;
    const known = await read(`${configPath(key)}/revisions`, { size: 1 }).catch(() => null);
    return { kind, config: { ...key, revision: known?.revisions[0].revision ?? 0, value: {}, isNew: true, isDeleted: known !== null } };
  }
}

export function Config({ route, canEdit }) {
  const [app, kind, name] = route.parts;
  const [done, setDone] = useState(null);
  const state = useLoaded(() => load({ app, kind, name }), [app, kind, name, done]);
  return html`<${Loaded} state=${state}>${(found) => html`
    ${done && html`<p class="good" role="status">${done.text(found.config)}</p>`}
    <${Editor} key=${`${app}/${kind}/${name}/${found.config.revision}`} canEdit=${canEdit} find=${route.query.find} ...${found} onDone=${(text) => setDone({ text })} />`}<//>`;
}

/** Returns the value that is edited. It begins as the draft of this tab, or as the stored value. */
function useValue(kind, config) {
  const [draft, setDraft] = useState(() => draftOf(config));
  const [value, setValue] = useState(draft?.value ?? config.value);
  const changes = differencesOf(config.value, value);
  const isChanged = changes.length > 0;
  const begun = useRef({ revision: draft?.revision ?? config.revision, from: draft?.from });
  useEffect(() => {
    if (isChanged) keepDraft(config, { ...begun.current, value: withoutSecrets(kind.schema, kind.schema.$defs ?? {}, value, config.value) });
    else forgetDraft(config);
  }, [value]);
  const discard = () => {
    forgetDraft(config);
    begun.current = { revision: config.revision };
    setDraft(null);
    setValue(config.value);
  };
  return { value, setValue, changes, draft: isChanged ? draft : null, discard };
}

/** Returns what the server says about a value: `{errors, warnings}`. */
function useJudged(config, value, isChanged, canEdit) {
  const stored = { errors: [], warnings: config.warnings ?? [] };
  const [judged, setJudged] = useState(stored);
  useEffect(() => {
    if (!canEdit || !isChanged) return setJudged(stored);
    let current = true;
    const timer = setTimeout(async () => {
      const found = await write("POST", `${configPath(config)}/validate`, { value }).catch(() => null);
      if (current && found) setJudged(found);
    }, VALIDATE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [value]);
  return judged;
}

function Editor({ kind, config, canEdit, find, onDone }) {
  const { value, setValue, changes, draft, discard } = useValue(kind, config);
  const [tab, setTab] = useState("form");
  const [replaced, setReplaced] = useState(0);
  const [broken, setBroken] = useState(false);
  const [names] = useState(() => namesIn(config.app));
  const judged = useJudged(config, value, changes.length > 0 || config.isNew, canEdit);
  const faults = [...judged.errors, ...judged.warnings];
  const replace = (next) => {
    setValue(next);
    setReplaced(replaced + 1);
  };
  const form = { app: config.app, kind: config.kind, names, defs: kind.schema.$defs ?? {}, faults, readOnly: !canEdit, stored: config.value };
  const json = () => html`<${JsonEditor} ...${{ value, faults, canEdit, onChange: setValue, onBroken: setBroken }} />`;
  const views = {
    form: kind.schema.properties ? () => html`<${Form} schema=${kind.schema} ...${{ value, form, find }} onChange=${setValue} />` : json,
    json,
    history: () => html`<${History} config=${config} canEdit=${canEdit} onRestored=${(revision) => (forgetDraft(config), onDone(() => TEXTS.restore.done(revision)))} />`,
    try: () => html`<${TRIALS[config.kind]} config=${config} value=${value} />`,
  };
  const hasHistory = !config.isNew || config.isDeleted;
  const tabs = ["form", "json", ...(canEdit && config.kind in TRIALS ? ["try"] : []), ...(hasHistory ? ["history"] : [])];
  return html`<div>
    <p class="crumbs"><a href="#/configs">${TEXTS.configs}</a> / ${config.app} / ${kind.title}</p>
    <header class="head">
      <h1>${kind.singleton ? kind.title : config.name}</h1>
      ${!config.isNew && html`<${State} row=${config} />`}
      <div class="actions"><${Transfer} kind=${kind} config=${config} value=${value} canEdit=${canEdit} onImport=${replace} />
        ${canEdit && !config.isNew && html`<${DeleteConfig} config=${config} onDone=${(done) => (forgetDraft(config), onDone(() => done))} />`}</div>
    </header>
    <${Notices} ...${{ config, canEdit, draft, judged, tab }} onDiscard=${() => (discard(), setReplaced(replaced + 1))} />
    <nav class="tabs" aria-label=${config.name}>
      ${tabs.map((id) => html`<button key=${id} class="plain"
        aria-current=${id === tab ? "true" : null} onClick=${() => setTab(id)}>${id === "try" ? TEXTS.trial.tab : texts[id]}</button>`)}
    </nav>
    <div key=${`${tab} ${replaced}`}>${views[tab]()}</div>
    ${canEdit && tab !== "history" && html`<${Save} ...${{ config, value, changes, judged, broken }} onReload=${() => onDone(() => forms.reloaded)}
      onSaved=${() => (forgetDraft(config), onDone((saved) => texts.saved(saved.revision)))} />`}</div>`;
}

/** What one must know before one edits: faults, warnings, the draft, and what else decides. */
function Notices({ config, canEdit, draft, judged, tab, onDiscard }) {
  return html`
    ${config.fault && html`<p class="error">${config.fault}</p>`}
    ${!canEdit && html`<p class="muted">${texts.readOnly}</p>`}
    ${config.isDeleted && html`<${Note} tone="waiting">${forms.deleted}<//>`}
    ${STRATEGIES.includes(config.kind) && html`<p class="lead below">${forms.orderLead} <a href=${orderHref(config.app)}>${forms.order}</a></p>`}
    ${draft && html`<${Note} tone="waiting" title=${draft.from ? forms.copied(draft.from) : forms.draft}>
      ${(draft.revision ?? config.revision) !== config.revision && html`<p>${forms.draftOld(config.revision)}</p>`}<p>${forms.draftSecrets}</p>
      <button type="button" class="quiet small" onClick=${onDiscard}>${forms.discard}</button><//>`}
    ${tab !== "json" && html`<${Faults} judged=${{ errors: judged.errors.filter(({ path }) => path === ""), warnings: judged.warnings }} />`}`;
}
