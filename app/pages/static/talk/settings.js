// The settings: strategies and their order, languages, the voice and the values for the system prompt.

import { development } from "../shared/bar.js";
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { IconButton } from "./icons.js";
import { parametersIn } from "./choices.js";

/** A drawer over the page. */
export function Settings({ open, offers, choices, onChoose, onNewUser, onClose }) {
  const drawer = useRef(null);
  useEffect(() => {
    if (open) drawer.current.showModal();
    else drawer.current.close();
  }, [open]);
  const onClick = (event) => event.target === drawer.current && onClose(); // The backdrop is part of the dialog.
  return html`<dialog class="drawer" aria-labelledby="settings-title" ref=${drawer} onClose=${onClose} onClick=${onClick}>
    <div class="drawer-content">
      <header>
        <h2 id="settings-title">Settings</h2>
        <${IconButton} icon="close" label="Close the settings" onAct=${onClose} />
      </header>
      <${Strategies} offers=${offers} choices=${choices} onChoose=${onChoose} />
      <${Choice}
        id="language"
        label="I speak"
        value=${choices.language}
        options=${choices.heard}
        onChoose=${(language) => onChoose({ language })}
      />
      <${Choice}
        id="answer-language"
        label="Answer in"
        value=${choices.answerLanguage}
        options=${choices.spoken}
        onChoose=${(answerLanguage) => onChoose({ answerLanguage })}
      />
      <label>
        Voice
        <input
          autocomplete="off"
          placeholder="The strategy's own"
          disabled=${!choices.speaks}
          value=${choices.voice}
          onChange=${(event) => onChoose({ voice: event.currentTarget.value.trim() })}
        />
      </label>
      <${SystemPrompt} value=${choices.params} onChoose=${onChoose} />
      <footer>
        <button type="button" class="quiet" onClick=${onNewUser}>Start as a new user</button>
        <small>This browser forgets its user and the conversation.</small>
      </footer>
    </div>
  </dialog>`;
}

function Strategies({ offers, choices, onChoose }) {
  const strategies = offers.conversation.map(({ name, fault }) => ({
    code: name,
    title: fault ? `${name} (not usable)` : name,
    fault,
  }));
  const raise = (name) => {
    const order = [...choices.order];
    const at = order.indexOf(name);
    order.splice(at - 1, 2, name, order[at - 1]);
    onChoose({ order });
  };
  return html`
    <${Choice}
      id="strategy"
      label="Strategy"
      value=${choices.strategy}
      options=${strategies}
      describedBy="strategy-how"
      onChoose=${(strategy) => onChoose({ strategy })}
    />
    <small id="strategy-how">A strategy names the models that recognize your speech, answer and speak.</small>
    ${development &&
    strategies.filter(({ fault }) => fault).map(({ code, fault }) => html`<small key=${code}>${code}: ${fault}</small>`)}
    <label class="check">
      <input type="checkbox" checked=${choices.others} onChange=${(event) => onChoose({ others: event.currentTarget.checked })} />
      Fall back to the other strategies if it fails
    </label>
    ${choices.others &&
    html`<ol class="order" aria-label="Order of the other strategies">
      ${choices.order.map(
        (name, at) => html`<li key=${name}>
          <span>${name}</span>
          <${IconButton} icon="up" label=${`Try ${name} earlier`} enabled=${at > 0} onAct=${() => raise(name)} />
        </li>`,
      )}
    </ol>`}
  `;
}

function SystemPrompt({ value, onChoose }) {
  const [text, setText] = useState(value);
  const fault = parametersIn(text).fault;
  const onInput = (event) => {
    setText(event.currentTarget.value);
    if (!parametersIn(event.currentTarget.value).fault) onChoose({ params: event.currentTarget.value });
  };
  return html`<label>
      Values for the system prompt
      <textarea
        rows="3"
        spellcheck="false"
        placeholder='{"name": "Ada"}'
        aria-invalid=${fault ? "true" : null}
        aria-describedby="params-how"
        value=${text}
        onInput=${onInput}
      />
    </label>
    <small id="params-how">${fault || "A JSON object. The strategy's prompt reads {{.name}} from it."}</small>`;
}

function Choice({ id, label, value, options, describedBy, onChoose }) {
  return html`<label for=${id}>
    ${label}
    <select id=${id} value=${value} aria-describedby=${describedBy} onChange=${(event) => onChoose(event.currentTarget.value)}>
      ${options.map(
        ({ code, title, fault }) => html`<option key=${code} value=${code} disabled=${Boolean(fault)}>${title}</option>`,
      )}
    </select>
  </label>`;
}
