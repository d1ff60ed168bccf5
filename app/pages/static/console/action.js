// Buttons for changes: what will happen, the reason for it and, where it is dangerous, the name of what it is about.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { write } from "./api.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.action;

/**
 * A button that opens a dialog. `text` says what will happen. `name`, or one of `names`: must be typed. `heading`: of the
 * dialog, instead of `title`. `reason`: is asked for.
 * `fields`: `{id, title, type, required, value, help, options}`. `onRun({reason, values, send})` returns a promise:
 * `send(method, path, body)` calls the admin API with the reason, and with one key for all attempts of this dialog, so
 * that an attempt whose answer was lost can be repeated without a second effect.
 */
export function Action({ title, heading = title, text, name, names = name ? [name] : [], reason, fields = [], danger, primary, onRun, onDone, disabled }) {
  const [open, setOpen] = useState(false);
  const style = `${primary ? "" : "quiet"} small ${danger ? "dangerous" : ""}`;
  return html`<button type="button" class=${style} disabled=${disabled} onClick=${() => setOpen(true)}>${title}</button>
    ${open && html`<${Ask} ...${{ title, heading, text, names, reason, fields, danger, onRun, onDone }} onClose=${() => setOpen(false)} />`}`;
}

function Ask({ title, heading, text, names, reason, fields, danger, onRun, onDone, onClose }) {
  const dialog = useRef();
  const [typed, setTyped] = useState("");
  const [why, setWhy] = useState("");
  const [values, setValues] = useState(Object.fromEntries(fields.map(({ id, value }) => [id, value ?? ""])));
  const [state, setState] = useState({});
  const [key] = useState(() => crypto.randomUUID());
  useEffect(() => dialog.current.showModal(), []);
  const submit = async (event) => {
    event.preventDefault();
    setState({ running: true });
    try {
      const send = (method, path, body) => writeWith(why.trim(), method, path, body, { "Idempotency-Key": key });
      const answer = await onRun({ reason: why.trim(), values, send });
      onDone?.(answer);
      onClose();
    } catch (error) {
      setState(failure(error));
    }
  };
  const named = !names.length || names.includes(typed.trim());
  const ready = named && (!reason || why.trim() !== "") && !state.running;
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="action-title">
    <form onSubmit=${submit}>
      <h2 id="action-title">${heading}</h2>
      ${text && html`<p>${text}</p>`}
      ${fields.map((field) => html`<${FieldOf} key=${field.id} field=${field} value=${values[field.id]} locked=${state.isUncertain}
        onInput=${(next) => setValues({ ...values, [field.id]: next })} />`)}
      ${reason && html`<label>${texts.reason}<input required maxlength="500" value=${why} readonly=${state.isUncertain} onInput=${(event) => setWhy(event.currentTarget.value)} />
        <small>${texts.reasonHelp}</small></label>`}
      ${names.length > 0 && html`<label>${texts.typeName(names)}<input autocomplete="off" spellcheck="false" value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /></label>`}
      ${state.error && html`<p class="error" role="alert">${state.error}</p>`}
      ${!ready && !state.running && html`<small>${named ? texts.reasonFirst : texts.nameFirst}</small>`}
      <div class="actions end">
        <button type="button" class="quiet" onClick=${onClose}>${TEXTS.cancel}</button>
        <button class=${danger ? "danger" : ""} disabled=${!ready} aria-busy=${state.running ? "true" : null}>${state.running ? texts.running : title}</button>
      </div>
    </form>
  </dialog>`;
}

/**
 * The state of a dialog whose attempt has failed. Without an answer, nobody knows whether the server has acted, so its
 * fields are kept as they are: the same attempt again has no second effect, but another one might.
 */
export function failure(error) {
  const isUncertain = error.status === 0 || error.status >= 500;
  return { isUncertain, error: isUncertain ? `${error.message} ${texts.uncertain}` : error.message };
}

function FieldOf({ field, value, onInput, locked }) {
  const change = (event) => onInput(event.currentTarget.value);
  if (field.options)
    return html`<label>${field.title}<select value=${value} onChange=${change} required=${field.required} disabled=${locked}>
      ${!field.required && html`<option value=""></option>`}
      ${field.options.map(([id, text]) => html`<option key=${id} value=${id} selected=${id === value}>${text}</option>`)}</select></label>`;
  return html`<label>${field.title}<input type=${field.type ?? "text"} required=${field.required} value=${value} readonly=${locked} onInput=${change} />
    ${field.help && html`<small>${field.help}</small>`}</label>`;
}

const utf8 = (text) => String.fromCharCode(...new TextEncoder().encode(text));

/** Calls the admin API with a reason, which the audit log stores. An `Action` uses the `send` that it gets instead. */
export const writeWith = (reason, method, path, body, headers = {}) => write(method, path, body, { ...headers, ...(reason && { "X-Parley-Reason": utf8(reason) }) });
