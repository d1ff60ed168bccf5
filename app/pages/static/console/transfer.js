// Takes the value of a config out of the console and into it: export, import, and a copy to another app.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { configHref } from "./configs.js";
import { draftOf, keepDraft } from "./drafts.js";
import { useLoaded } from "./loading.js";
import { withoutSecrets } from "./schema.js";
import { download } from "./table.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.config;

export function Transfer({ kind, config, value, canEdit, onImport }) {
  const plain = () => withoutSecrets(kind.schema, kind.schema.$defs ?? {}, value, config.value);
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
    const target = { ...config, app: event.currentTarget.value };
    event.currentTarget.value = "";
    if (!target.app || (draftOf(target) && !confirm(texts.replaceDraft(target.app)))) return;
    keepDraft(target, { value: plain(), from: config.app });
    location.hash = configHref(target);
  };
  const name = `${config.app}-${config.kind}-${config.name}.json`;
  return html`<button class="quiet small" onClick=${() => download(name, "application/json", JSON.stringify(plain(), null, 2))}>${texts.download}</button>
    ${canEdit && html`<label class="upload">${texts.upload}<input type="file" accept="application/json" onChange=${upload} /></label>`}
    ${canEdit && others.length > 0 && html`<select aria-label=${texts.copy} onChange=${copy}>
      <option value="">${texts.copy}</option>${others.map((app) => html`<option key=${app} value=${app}>${app}</option>`)}</select>`}`;
}
