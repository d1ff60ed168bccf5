// The JSON of a config, which is checked while one types: by its syntax here, and by the server as a config.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { lineOf, linesOf } from "./json_lines.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.configForm;

/** `faults`: what the server says about the value. `onBroken(isBroken)`: the text is no JSON object, so the value is an older one. */
export function JsonEditor({ value, faults, canEdit, onChange, onBroken }) {
  const area = useRef();
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const { lines, fault } = linesOf(text);
  useEffect(() => () => onBroken(false), []);
  const change = (event) => {
    const next = event.currentTarget.value;
    setText(next);
    const broken = faultOf(next);
    onBroken(Boolean(broken));
    if (!broken) onChange(JSON.parse(next));
  };
  const broken = fault ?? faultOf(text);
  const listed = broken ? [{ ...broken, path: "" }] : faults.map((each) => ({ ...each, line: lineOf(lines, each.path) }));
  const show = (line) => {
    const begin = text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.current.focus();
    area.current.setSelectionRange(begin, begin + text.split("\n")[line - 1].length);
  };
  return html`<label for="raw">${TEXTS.config.json}</label>
    <textarea id="raw" ref=${area} class="json" spellcheck="false" disabled=${!canEdit} aria-invalid=${listed.length ? "true" : null} aria-describedby="raw-faults"
      rows=${Math.min(28, text.split("\n").length + 1)} value=${text} onInput=${change}></textarea>
    <div id="raw-faults" role="status">${listed.length === 0
      ? html`<small>${texts.jsonGood}</small>`
      : html`<ul class="plain faults">${listed.map((each) => html`<li key=${`${each.line} ${each.path} ${each.message}`} class="error">
          <button type="button" class="plain" onClick=${() => show(each.line)}>${texts.line(each.line)}</button> ${each.path && html`<code>${each.path}</code>`} ${each.message}</li>`)}</ul>`}</div>`;
}

function faultOf(text) {
  const { fault } = linesOf(text);
  if (fault) return fault;
  return text.trim().startsWith("{") ? null : { line: 1, message: texts.mustBeObject };
}
