// The request as code to copy, in the language that the reader has chosen last.

import { html, useRef, useState } from "../vendor/preact.js";
import { TabList } from "../talk/tabs.js";
import { CopyButton } from "./copy.js";
import { curlOf, pythonOf, typescriptOf } from "./snippets.js";

const LANGUAGES = [
  { id: "curl", title: "curl", of: curlOf },
  { id: "typescript", title: "TypeScript", of: typescriptOf, needs: "Needs Node 20 and the client in clients/typescript." },
  { id: "python", title: "Python", of: pythonOf, needs: "Needs Python 3.11 and the client in clients/python." },
];

export function Code({ record }) {
  const [language, setLanguage] = useState("curl");
  const code = useRef(null);
  const { request } = record;
  const choices = LANGUAGES.filter(({ of }) => of(request) !== null);
  const { id, title, of, needs } = choices.find((each) => each.id === language) ?? choices[0];
  const text = of(request);
  return html`<section class="code-panel">
    <p>This request, as it was sent. It expects the session of a user in the variable <code>SESSION</code>.</p>
    <${TabList} label="Languages" tabs=${choices} shown=${id} onShow=${setLanguage} />
    <div role="tabpanel" id=${`panel-${id}`} aria-labelledby=${`tab-${id}`}>
      <pre class="code" tabindex="0" role="region" aria-label=${`The request in ${title}`}><code ref=${code}>${text}</code></pre>
    </div>
    <p class="code-foot">
      <${CopyButton} label=${`Copy ${title}`} textOf=${() => text} onSelect=${() => getSelection().selectAllChildren(code.current)} />
      ${needs && html`<span class="muted">${needs}</span>`}
    </p>
    ${record.isSpoken && html`<p class="muted">Put your own recording into recording.wav: 16 kHz, mono, 16 bits.</p>`}
    ${!request.parameters && html`<p class="muted">The page was reloaded during this answer, so it only knows how it was resumed.</p>`}
  </section>`;
}
