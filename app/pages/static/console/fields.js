// The fields of a form made from a JSON Schema: a control for each property, with its documentation beside it.

import { html, useState } from "../vendor/preact.js";
import { Platform } from "./platforms.js";
import { Reference, References } from "./references.js";
import { differs, faultsAt, fitOf, labelOf, ownFit, resolved, widgetOf, withKey } from "./schema.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.config;

/** The properties of an object. `form`: `{app, kind, names, defs, faults, readOnly, find}`. With `find`, only those that fit it. */
export function Fields({ schema, value, path, form, onChange }) {
  return Object.entries(schema.properties).map(([name, property]) => {
    const inner = resolved(property, form.defs);
    return (!form.find || fitOf(name, inner, form.defs, form.find) > 0) &&
      html`<${AnyField} key=${name} ...${{ name, inner, path, form, value, onChange, required: schema.required?.includes(name) }} />`;
  });
}

/** One property of an object `value` at `path`, whose resolved schema is `inner`. */
export function AnyField({ name, inner, path, form, value, required, onChange }) {
  const at = path ? `${path}.${name}` : name;
  const fits = form.find && ownFit(name, inner, form.find) > 0;
  const given = { name, schema: inner, path: at, form: fits ? { ...form, find: "" } : form, value: value?.[name] };
  const widget = widgetOf(inner);
  const Shown = { object: Nested, list: List, references: Ordered }[widget] ?? Field;
  return html`<${Shown} ...${given} required=${required} onChange=${(next) => onChange(withKey(value, name, next))} />`;
}

/** What a form calls a field: in words, and the name that JSON and the API have for it. */
const Label = ({ name, schema, value, required }) => html`${labelOf(name, schema)}${required ? " *" : ""} <code class="field-name">${name}</code>
  ${differs(schema, value) && !required && html`<span class="badge" title=${TEXTS.configForm.differsHelp}>${TEXTS.configForm.differs}</span>`}`;

/** A list of names of configs. */
const Ordered = ({ name, schema, path, form, value, onChange }) => html`<div class="nested">
  <fieldset disabled=${form.readOnly}>
    <legend><${Label} ...${{ name, schema, value }} /></legend>
    <small><${Docs} text=${schema.description} /></small>
    ${faultsAt(form.faults, path, true).map((fault) => html`<p class="error">${fault.message}</p>`)}
    <${References} ...${{ name, schema, form, value, onChange }} />
  </fieldset>
</div>`;

/** A text in which parts between backquotes are code. */
export const Docs = ({ text }) => (text ?? "").split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part));

/** The entries of a list, each with the controls of its schema. */
function List({ name, schema, path, form, value, onChange }) {
  const inner = resolved(schema.items, form.defs);
  const entries = value ?? [];
  const faults = faultsAt(form.faults, path);
  const change = (index, next) => onChange(next === undefined ? entries.filter((_, each) => each !== index) : entries.map((entry, each) => (each === index ? next : entry)));
  const add = () => onChange([...entries, widgetOf(inner) === "object" ? {} : widgetOf(inner) === "number" ? 0 : (inner.enum?.[0] ?? "")]);
  return html`<div class="nested">
    <fieldset disabled=${form.readOnly}>
      <legend><${Label} ...${{ name, schema, value }} /></legend>
      <small><${Docs} text=${schema.description} /></small>
      ${faults.map((fault) => html`<p class="error">${fault.message}</p>`)}
      ${entries.map((entry, index) => html`<${Entry} key=${index} name=${`${labelOf(name, schema)} ${index + 1}`} schema=${inner} path=${`${path}.${index}`} form=${form} value=${entry} onChange=${(next) => change(index, next)} />`)}
      <div><button type="button" class="quiet small" onClick=${add}>${TEXTS.configForm.addTo(labelOf(name, schema))}</button></div>
    </fieldset>
  </div>`;
}

function Entry({ name, schema, path, form, value, onChange }) {
  const widget = widgetOf(schema);
  if (widget === "object") return html`<div class="entry"><${Nested} ...${{ name, schema, path, form, value, onChange }} isEntry /></div>`;
  const faults = faultsAt(form.faults, path);
  const Control = CONTROLS[widget] ?? Json;
  const attributes = { id: `field-${path}`, "aria-label": name, "aria-invalid": faults.length ? "true" : null, disabled: form.readOnly };
  return html`<div class="entry scalar"><div><${Control} schema=${schema} value=${value} onChange=${(next) => onChange(next ?? "")} attributes=${attributes} />
      ${faults.map((fault) => html`<p class="error">${fault.message}</p>`)}</div>
    <button type="button" class="quiet small" aria-label=${`${texts.remove} ${name}`} onClick=${() => onChange(undefined)}>${texts.remove}</button></div>`;
}

/** An object with fields. One that is required is open, one that is not is added first. */
function Nested({ name, schema, path, form, value, required, isEntry, onChange }) {
  const faults = faultsAt(form.faults, path);
  const isAbsent = !required && (value === undefined || value === null);
  return html`<div class="nested">
    <fieldset disabled=${form.readOnly}>
      <legend>${isEntry ? name : html`<${Label} ...${{ name, schema, value, required }} />`}</legend>
      ${schema.description && html`<small><${Docs} text=${schema.description} /></small>`}
      ${faults.map((fault) => html`<p class="error">${fault.message}</p>`)}
      ${isAbsent
        ? html`<div><button type="button" class="quiet small" onClick=${() => onChange({})}>${texts.set} ${labelOf(name, schema)}</button></div>`
        : html`<${Fields} schema=${schema} value=${value ?? {}} path=${path} form=${form} onChange=${onChange} />
            ${!required && html`<button type="button" class="quiet small" onClick=${() => onChange(undefined)}>${texts.remove} ${isEntry ? name : labelOf(name, schema)}</button>`}`}
    </fieldset>
  </div>`;
}

function Field({ name, schema, path, form, value, required, onChange }) {
  const widget = widgetOf(schema);
  const faults = faultsAt(form.faults, path, widget === "json");
  const id = `field-${path}`;
  const Control = form.kind === "vendor_accounts" && path === "platform" ? Platform : CONTROLS[widget];
  const described = `${id}-docs${faults.length ? ` ${id}-faults` : ""}`;
  const attributes = { id, "aria-describedby": described, "aria-invalid": faults.length ? "true" : null, disabled: form.readOnly };
  return html`<div class="field">
    <div class="control">
      <label for=${id}><${Label} ...${{ name, schema, value, required }} /></label>
      <${Control} ...${{ schema, value, onChange, attributes, form }} />
      ${faults.length > 0 && html`<div id=${`${id}-faults`}>${faults.map((fault) => html`<p class="error">${fault.message}</p>`)}</div>`}
    </div>
    <div class="docs" id=${`${id}-docs`}><${Docs} text=${schema.description} /></div>
  </div>`;
}

const shown = (value) => (value === undefined || value === null ? texts.unset : typeof value === "string" ? value : JSON.stringify(value));

function Text({ schema, value, onChange, attributes }) {
  const change = (event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value);
  return html`<input ...${attributes} value=${value ?? ""} placeholder=${shown(schema.default)} onInput=${change} />`;
}

function NumberField({ schema, value, onChange, attributes }) {
  const change = (event) => {
    const text = event.currentTarget.value;
    onChange(text === "" ? undefined : Number(text));
  };
  const inBytes = /bytes$/.test(attributes.id);
  const step = schema.type === "integer" ? 1 : "any";
  return html`<input ...${attributes} type="number" step=${step} min=${schema.minimum} max=${schema.maximum} value=${value ?? ""}
    placeholder=${shown(schema.default)} onInput=${change} />${inBytes && html`<small>${TEXTS.streamsPage.size(value ?? schema.default ?? 0)}</small>`}`;
}

function Check({ schema, value, onChange, attributes }) {
  if (schema.default === null) return html`<${Flag} ...${{ value, onChange, attributes }} />`;
  const change = (event) => onChange(event.currentTarget.checked);
  return html`<div class="check"><input ...${attributes} type="checkbox" checked=${value ?? schema.default ?? false} onChange=${change} /></div>`;
}

/** True, false, or not set, where that means something else than false. */
const Flag = ({ value, onChange, attributes }) => html`<select ...${attributes} value=${String(value ?? "")}
  onChange=${(event) => onChange({ true: true, false: false }[event.currentTarget.value])}>
  ${[["", texts.unset], ["true", texts.yes], ["false", texts.no]].map(([id, title]) => html`<option key=${id} value=${id} selected=${id === String(value ?? "")}>${title}</option>`)}</select>`;

function Choice({ schema, value, onChange, attributes }) {
  const change = (event) => onChange(event.currentTarget.value || undefined);
  return html`<select ...${attributes} value=${value ?? ""} onChange=${change}>
    <option value="">${shown(schema.default)}</option>
    ${schema.enum.map((each) => html`<option key=${each} value=${each} selected=${each === value}>${each}</option>`)}
  </select>`;
}

/** A secret is written and never shown. The server keeps the stored one while its mark is in its place. */
function Secret({ value, onChange, attributes }) {
  const [stored] = useState(typeof value === "object" ? value : undefined);
  const change = (event) => onChange(event.currentTarget.value || stored);
  return html`<input ...${attributes} type="password" autocomplete="new-password" placeholder="••••••••"
      value=${typeof value === "string" ? value : ""} onInput=${change} />
    <small>${stored ? texts.secretSet : texts.secretNone}</small>`;
}

function Json({ value, onChange, attributes }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [broken, setBroken] = useState(false);
  const change = (event) => {
    const written = event.currentTarget.value;
    setText(written);
    try {
      onChange(written.trim() ? JSON.parse(written) : undefined);
      setBroken(false);
    } catch {
      setBroken(true);
    }
  };
  return html`<textarea ...${attributes} spellcheck="false" rows=${Math.min(16, text.split("\n").length + 1)} value=${text} onInput=${change}></textarea>
    ${broken ? html`<p class="error">${texts.badJson}</p>` : html`<small>${texts.rawHelp}</small>`}`;
}

const CONTROLS = { reference: Reference, text: Text, number: NumberField, check: Check, choice: Choice, secret: Secret, json: Json };
export { Json };
