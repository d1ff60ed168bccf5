// The settings: strategies and their order, languages, the voice and the values for the system prompt.

import { development } from "../shared/bar.js";
import { html, useEffect, useRef } from "../vendor/preact.js";
import { IconButton } from "./icons.js";
import { PromptValues } from "./prompt_values.js";

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
          aria-describedby="voice-how"
        />
      </label>
      <small id="voice-how">The name of a voice at the vendor that speaks the answers.</small>
      <${PromptValues} text=${choices.params} onChange=${(params) => onChoose({ params })} />
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
  const swap = (at) => onChoose({ order: choices.order.toSpliced(at, 2, choices.order[at + 1], choices.order[at]) });
  const use = (name, used) => {
    const others = choices.skipped.filter((other) => other !== name);
    onChoose({ skipped: used ? others : [...others, name] });
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
          <label class="check">
            <input type="checkbox" checked=${!choices.skipped.includes(name)} onChange=${(event) => use(name, event.currentTarget.checked)} />
            ${name}
          </label>
          <${IconButton} icon="up" label=${`Try ${name} earlier`} enabled=${at > 0} onAct=${() => swap(at - 1)} />
          <${IconButton} icon="later" label=${`Try ${name} later`} enabled=${at < choices.order.length - 1} onAct=${() => swap(at)} />
        </li>`,
      )}
    </ol>`}
  `;
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
