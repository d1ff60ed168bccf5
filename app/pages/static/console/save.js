// The review of changes: what changes, what the server says about it, why it changes, and the button that saves.

import { html, useState } from "../vendor/preact.js";
import { configPath, write } from "./api.js";
import { ifUnchanged, isConflict } from "./conditions.js";
import { Changes } from "./history.js";
import { Note } from "./parts.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.config;
const forms = TEXTS.configForm;

const Listed = ({ faults }) => html`<ul>${faults.map(({ path, message }) => html`<li key=${`${path} ${message}`}><code>${path || forms.value}</code> ${message}</li>`)}</ul>`;

/** Errors and warnings as text. `judged`: `{errors, warnings}`. */
export const Faults = ({ judged }) => html`
  ${judged.errors.length > 0 && html`<${Note} tone="bad" title=${forms.errors}><${Listed} faults=${judged.errors} /><//>`}
  ${judged.warnings.length > 0 && html`<${Note} tone="waiting" title=${forms.warnings}><${Listed} faults=${judged.warnings} /><//>`}`;

/** `onReload`: shows the config as it is stored now. The draft remains. */
export function Save({ config, value, changes, judged, broken, onSaved, onReload }) {
  const [reviewing, setReviewing] = useState(false);
  const [comment, setComment] = useState("");
  const [failure, setFailure] = useState(null);
  const save = async (event) => {
    event.preventDefault();
    setFailure(null);
    try {
      await write("PUT", configPath(config), { value, comment }, ifUnchanged(config));
      onSaved();
    } catch (error) {
      setFailure(error);
    }
  };
  const nothing = !changes.length && !config.isNew;
  const why = broken ? forms.brokenJson : nothing ? texts.unchanged : "";
  if (!reviewing || why)
    return html`<div class="bar"><button disabled=${why !== ""} onClick=${() => setReviewing(true)}>${texts.review}</button>
      ${why && html`<span class="muted">${why}</span>`}</div>`;
  const refused = judged.errors.length > 0;
  return html`<section aria-labelledby="changes" ref=${showIt}><h2 id="changes">${texts.changes}</h2><${Changes} changes=${changes} /><${Faults} judged=${judged} /></section>
    ${failure && html`<div ref=${showIt}>${isConflict(failure)
      ? html`<${Note} tone="bad" title=${forms.conflict}><p>${forms.keptAsDraft}</p><button type="button" class="quiet small" onClick=${onReload}>${forms.reload}</button><//>`
      : html`<p class="error" role="alert">${failure.message}</p>`}</div>`}
    <form class="bar" onSubmit=${save}>
      <label>${texts.comment}<input maxlength="500" value=${comment} onInput=${(event) => setComment(event.currentTarget.value)} /></label>
      <button disabled=${refused}>${texts.save}</button>
      <button type="button" class="quiet" onClick=${() => setReviewing(false)}>${TEXTS.cancel}</button>
      ${refused && html`<span class="error">${forms.refused}</span>`}
    </form>`;
}

const showIt = (section) => section?.scrollIntoView({ block: "center" });
