// The form of a config: its fields in groups, those that differ from the defaults first, and a search over them.

import { html, useState } from "../vendor/preact.js";
import { AnyField } from "./fields.js";
import { grouped } from "./groups.js";
import { differs, fitOf, resolved } from "./schema.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.configForm;

/** `form` is as for `Fields`, with the `stored` value, by which the fields are sorted. `find`: the first search. */
export function Form({ schema, value, form, find: first = "", onChange }) {
  const [find, setFind] = useState(first);
  const search = find.trim();
  const fields = Object.entries(schema.properties).map(([name, property]) => [name, resolved(property, form.defs)]);
  const given = { path: "", form: { ...form, find: search }, value, onChange };
  const field = ([name, inner]) => html`<${AnyField} key=${name} ...${given} name=${name} inner=${inner} required=${schema.required?.includes(name)} />`;
  return html`<div class="find"><label>${texts.find}<input type="search" value=${find} onInput=${(event) => setFind(event.currentTarget.value)} /></label>
      ${search && html`<button type="button" class="quiet" onClick=${() => setFind("")}>${texts.all}</button>`}</div>
    <fieldset class="top" disabled=${form.readOnly}>
      ${search ? html`<${Found} ...${{ fields, form, search, field }} />` : grouped(fields).map(([id, members]) => html`<section key=${id}>
        ${id && html`<h2>${texts.groups[id]}</h2>`}${changedFirst(members, form.stored).map(field)}</section>`)}
    </fieldset>`;
}

function Found({ fields, form, search, field }) {
  const fits = new Map(fields.map(([name, inner]) => [name, fitOf(name, inner, form.defs, search)]));
  const found = fields.filter(([name]) => fits.get(name)).sort(([one], [other]) => fits.get(other) - fits.get(one));
  return found.length ? found.map(field) : html`<p class="empty">${texts.noField(search)}</p>`;
}

const changedFirst = (fields, stored) => {
  const isChanged = ([name, inner]) => differs(inner, stored?.[name]);
  return [...fields.filter(isChanged), ...fields.filter((each) => !isChanged(each))];
};
