// Fields that name other configs of the app: a choice, or a list that is put in order. What is missing stays visible.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { useLoaded } from "./loading.js";
import { hrefOf } from "./route.js";
import { kindsOf, labelOf } from "./schema.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.configForm;

/** Returns a function that reads the names of an app's configs of one kind, once per kind. */
export function namesIn(app) {
  const found = new Map();
  return (kind) => {
    if (!found.has(kind)) found.set(kind, read("/configs", { app, kind }).then(({ configs }) => configs.map(({ name }) => ({ kind, name }))));
    return found.get(kind);
  };
}

/** Returns the kinds that a field names, their configs, and where one of them is. Without `options` while they are read. */
function useConfigs(schema, form) {
  const kinds = kindsOf(schema);
  const { value } = useLoaded(() => Promise.all(kinds.map(form.names)), [kinds.join()]);
  const options = value?.flat().filter(({ name }, index, all) => all.findIndex((each) => each.name === name) === index);
  const kindOf = (name) => options?.find((each) => each.name === name)?.kind;
  return { kinds, options, kindOf, isMissing: (name) => options !== undefined && kindOf(name) === undefined };
}

const Pick = ({ value, options, all, onChoose, attributes }) => html`<select ...${attributes} value=${value ?? ""} onChange=${(event) => onChoose(event.currentTarget.value)}>
  <option value="">${all}</option>
  ${options.map(([name, title]) => html`<option key=${name} value=${name} selected=${name === value}>${title}</option>`)}</select>`;

const href = (form, kind, name) => hrefOf(["configs", form.app, kind, name]);

const None = ({ kinds, form }) => html`<small>${texts.noneOf(kinds.join(", "))} <a href=${hrefOf(["configs"], { app: form.app, kind: kinds[0], new: "1" })}>${texts.create}</a></small>`;

/** The name of one config. */
export function Reference({ schema, value, onChange, attributes, form }) {
  const { kinds, options, kindOf, isMissing } = useConfigs(schema, form);
  const missing = value && isMissing(value);
  const entries = (options ?? []).map(({ name }) => [name, name]);
  if (value && !entries.some(([name]) => name === value)) entries.unshift([value, missing ? texts.missing(value) : value]);
  return html`<div class="reference"><${Pick} value=${value} options=${entries} all=${schema.default ?? TEXTS.config.unset}
      onChoose=${(name) => onChange(name || undefined)} attributes=${attributes} />
    ${value && kindOf(value) && html`<a href=${href(form, kindOf(value), value)}>${texts.openConfig(value)}</a>`}</div>
    ${missing && html`<p class="error">${texts.missingText(value, kinds.join(", "))}</p>`}
    ${options?.length === 0 && html`<${None} kinds=${kinds} form=${form} />`}`;
}

/** The names of several configs, in order. */
export function References({ name, schema, form, value, onChange }) {
  const { kinds, options, kindOf, isMissing } = useConfigs(schema, form);
  const names = value ?? [];
  const label = labelOf(name, schema);
  const rest = (options ?? []).filter((each) => !names.includes(each.name)).map((each) => [each.name, each.name]);
  const swap = (index, other) => onChange(names.map((each, at) => (at === index ? names[other] : at === other ? names[index] : each)));
  const row = (each, index) => html`<li key=${each}>
    <span>${kindOf(each) ? html`<a href=${href(form, kindOf(each), each)}>${each}</a>` : isMissing(each) ? texts.missing(each) : each}</span>
    ${!form.readOnly && html`<span class="actions">
      <button type="button" class="quiet small" aria-label=${texts.up(each)} disabled=${index === 0} onClick=${() => swap(index, index - 1)}>↑</button>
      <button type="button" class="quiet small" aria-label=${texts.down(each)} disabled=${index === names.length - 1} onClick=${() => swap(index, index + 1)}>↓</button>
      <button type="button" class="quiet small" aria-label=${texts.take(each)} onClick=${() => onChange(names.filter((_, at) => at !== index))}>${TEXTS.config.remove}</button>
    </span>`}
    ${isMissing(each) && html`<p class="error">${texts.missingText(each, kinds.join(", "))}</p>`}</li>`;
  return html`${names.length > 0 ? html`<ol class="ordered">${names.map(row)}</ol>` : html`<p class="muted">${texts.empty}</p>`}
    ${!form.readOnly && rest.length > 0 && html`<${Pick} key=${names.length} value="" options=${rest} all=${texts.pick}
      onChoose=${(next) => next && onChange([...names, next])} attributes=${{ "aria-label": texts.addTo(label) }} />`}
    ${options?.length === 0 && html`<${None} kinds=${kinds} form=${form} />`}`;
}
