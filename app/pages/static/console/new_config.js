// Makes apps and configs: an app is stored at once, and a config is opened as a draft.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { configPath, read, write } from "./api.js";
import { IF_ABSENT, isConflict } from "./conditions.js";
import { go } from "./route.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.configsPage;

const appKey = (id) => ({ app: id, kind: "apps", name: "default" });

/** `apps`: the ids of the existing ones. */
export function NewApp({ apps }) {
  const fields = [
    { id: "id", title: texts.appId, required: true, help: texts.appIdHelp },
    { id: "title", title: texts.title, help: texts.titleHelp },
    { id: "currency", title: texts.currency, required: true, value: "USD", help: texts.currencyHelp },
  ];
  const make = async ({ values }) => {
    const key = appKey(values.id.trim());
    if (apps.includes(key.app)) throw new Error(texts.appExists(key.app));
    const value = { title: values.title.trim(), currency: values.currency.trim() };
    await write("PUT", configPath(key), { value, comment: texts.newApp }, IF_ABSENT).catch((error) => {
      throw isConflict(error) ? new Error(texts.appExists(key.app)) : error;
    });
    return key;
  };
  const open = (key) => go(["configs", key.app, key.kind, key.name]);
  return html`<${Action} title=${texts.newApp} text=${texts.newAppText} fields=${fields} onRun=${make} onDone=${open} />`;
}

/** `given`: the app, kind and name that are chosen at first. `open`: whether the dialog is open at first. */
export function NewConfig({ apps, kinds, given, open: first }) {
  const [open, setOpen] = useState(first);
  return html`<button type="button" class="small" onClick=${() => setOpen(true)}>${texts.newConfig}</button>
    ${open && (apps.length ? html`<${Ask} ...${{ apps, kinds, given }} onClose=${() => setOpen(false)} />` : html`<p class="muted" role="alert">${texts.noApp}</p>`)}`;
}

function Ask({ apps, kinds, given, onClose }) {
  const dialog = useRef();
  const [app, setApp] = useState(apps.includes(given.app) ? given.app : apps[0]);
  const [kind, setKind] = useState(given.kind ?? "conversation");
  const [name, setName] = useState("");
  const [existing, setExisting] = useState([]);
  useEffect(() => dialog.current.showModal(), []);
  useEffect(() => {
    let current = true;
    read("/configs", { app, kind }).then(({ configs }) => current && setExisting(configs.map((row) => row.name)), () => {});
    return () => (current = false);
  }, [app, kind]);
  const chosen = kinds.find((row) => row.kind === kind);
  const target = chosen.singleton ? "default" : name.trim() || chosen.names?.[0];
  const submit = (event) => {
    event.preventDefault();
    dialog.current.close();
    go(["configs", app, kind, target]);
  };
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="new-config">
    <form onSubmit=${submit}>
      <h2 id="new-config">${texts.newConfig}</h2>
      <p>${texts.newConfigText}</p>
      <label>${TEXTS.list.app}<${Select} value=${app} options=${apps.map((id) => [id, id])} onChoose=${setApp} /></label>
      <label>${TEXTS.list.kind}<${Select} value=${kind} options=${kinds.map((row) => [row.kind, row.title])} onChoose=${setKind} /></label>
      ${chosen.singleton
        ? html`<p class="muted">${texts.oneName}</p>`
        : html`<label>${texts.name}${chosen.names
            ? html`<${Select} value=${name || chosen.names[0]} options=${chosen.names.map((each) => [each, each])} onChoose=${setName} />`
            : html`<input required autocomplete="off" spellcheck="false" maxlength="64" pattern="[A-Za-z0-9_\\-][A-Za-z0-9_.\\-]*" title=${texts.appIdHelp} value=${name} onInput=${(event) => setName(event.currentTarget.value)} />`}
          <small>${texts.nameHelp}</small></label>`}
      ${existing.includes(target) && html`<p class="muted" role="status">${texts.opens}</p>`}
      <div class="actions end">
        <button type="button" class="quiet" onClick=${onClose}>${TEXTS.cancel}</button>
        <button>${texts.open}</button>
      </div>
    </form>
  </dialog>`;
}

const Select = ({ value, options, onChoose }) => html`<select value=${value} onChange=${(event) => onChoose(event.currentTarget.value)}>
  ${options.map(([id, title]) => html`<option key=${id} value=${id} selected=${id === value}>${title}</option>`)}</select>`;
