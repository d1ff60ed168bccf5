// The platform of a vendor account: its name, or one that the server knows.

import { html } from "../vendor/preact.js";
import { read } from "./api.js";
import { useLoaded } from "./loading.js";

const optionsOf = ({ platform, aliases }) => [platform, ...aliases];

export function Platform({ value, onChange, attributes }) {
  const { value: found } = useLoaded(() => read("/platforms"), []);
  const list = `${attributes.id}-names`;
  return html`<input ...${attributes} list=${list} value=${value ?? ""} onInput=${(event) => onChange(event.currentTarget.value || undefined)} />
    <datalist id=${list}>${found?.platforms.flatMap(optionsOf).map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>`;
}
