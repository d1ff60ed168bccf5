// Deletes a config, after it has named the configs that need it.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Action } from "./action.js";
import { configPath, read } from "./api.js";
import { configHref } from "./configs.js";
import { TEXTS } from "./texts.js";

const texts = TEXTS.deletion;

export function DeleteConfig({ config, onDone }) {
  const remove = ({ send }) => send("DELETE", configPath(config));
  return html`<${Action} title=${texts.title} text=${html`<${Consequences} config=${config} />`} name=${config.name} reason danger onRun=${remove} onDone=${() => onDone(texts.done(config.name))} />`;
}

function Consequences({ config }) {
  const [found, setFound] = useState({});
  useEffect(() => {
    read(`${configPath(config)}/references`).then(({ references }) => setFound({ references }), (error) => setFound({ error: error.message }));
  }, []);
  const { references, error } = found;
  return html`${config.kind === "apps" ? texts.app : texts.text}
    ${error && html`<span class="error">${error}</span>`}
    ${references?.length === 0 && html` ${texts.none}`}
    ${references?.length > 0 && html` <strong>${texts.named(references.length)}</strong>
      ${references.map((row) => html` <a key=${`${row.kind}/${row.name}`} href=${configHref(row)}>${row.kind} ${row.name}</a>`)}`}`;
}
