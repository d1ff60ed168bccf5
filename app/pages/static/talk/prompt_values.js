// The values for the system prompt, as rows of a name and a value.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { parametersIn } from "./choices.js";
import { IconButton } from "./icons.js";

/** `text`: the JSON of an object with the values, or "". `onChange` gets the text after a change. */
export function PromptValues({ text, onChange }) {
  const [rows, setRows] = useState(() => Object.entries(parametersIn(text).values ?? {}).map(([name, value]) => [name, shown(value)]));
  const list = useRef(null);
  const count = useRef(rows.length);
  useLayoutEffect(() => {
    if (rows.length > count.current) list.current.lastElementChild.querySelector("input").focus();
    count.current = rows.length;
  }, [rows.length]);
  const change = (changed) => {
    setRows(changed);
    const values = changed.filter(([name]) => name !== "").map(([name, value]) => [name, read(value)]);
    onChange(values.length > 0 ? JSON.stringify(Object.fromEntries(values)) : "");
  };
  return html`<fieldset class="values" aria-describedby="values-how">
    <legend>Values for the system prompt</legend>
    <small id="values-how">The strategy's prompt reads the value called <i>name</i> as <code>{{.name}}</code>.</small>
    <ol ref=${list}>
      ${rows.map(
        ([name, value], at) => html`<li key=${at}>
          <${Field} label=${`Name of value ${at + 1}`} hint="Name" value=${name} onInput=${(typed) => change(rows.with(at, [typed.trim(), value]))} />
          <${Field} label=${`Value ${at + 1}`} hint="Value" value=${value} onInput=${(typed) => change(rows.with(at, [name, typed]))} />
          <${IconButton} icon="close" label=${`Remove ${name || `value ${at + 1}`}`} onAct=${() => change(rows.toSpliced(at, 1))} />
        </li>`,
      )}
    </ol>
    <button type="button" class="quiet small" onClick=${() => change([...rows, ["", ""]])}>Add a value</button>
  </fieldset>`;
}

const Field = ({ label, hint, value, onInput }) => html`<input
  aria-label=${label}
  placeholder=${hint}
  autocomplete="off"
  spellcheck="false"
  value=${value}
  onInput=${(event) => onInput(event.currentTarget.value)}
/>`;

/** JSON, such as a number or true, is sent as such, and all else as a text: also numbers that would be written otherwise. */
function read(value) {
  try {
    const parsed = JSON.parse(value);
    return typeof parsed === "number" && String(parsed) !== value ? value : parsed;
  } catch {
    return value;
  }
}

const shown = (value) => (typeof value === "string" && read(value) === value ? value : JSON.stringify(value));
