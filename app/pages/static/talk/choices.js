// What the user chooses of what the app offers: a strategy, and the languages it is spoken to and answers in.

import { html } from "../vendor/preact.js";
import { languageChoices } from "./languages.js";

const FIRST_LANGUAGE = "en-US";

/** What `chosen` comes to among `offers`: what is not offered any more is replaced by what is. */
export function settled(chosen, offers) {
  const sound = offers.conversation.filter(({ fault }) => !fault);
  const whole = sound.find(({ hears, speaks }) => hears && speaks) ?? sound[0];
  const strategy = sound.find(({ name }) => name === chosen.strategy) ?? whole;
  const heard = languageChoices(strategy?.heard_languages);
  const spoken = languageChoices(strategy?.spoken_languages);
  return {
    strategy: strategy?.name ?? "",
    language: oneOf(heard, chosen.language),
    answerLanguage: oneOf(spoken, chosen.answerLanguage),
    others: chosen.others ?? false,
    hears: strategy?.hears ?? false,
    speaks: strategy?.speaks ?? false,
    strategies: [strategy?.name, ...(chosen.others ? sound.map(({ name }) => name) : [])].filter(
      (name, at, names) => name && names.indexOf(name) === at,
    ),
    heard,
    spoken,
  };
}

function oneOf(languages, code) {
  const known = [code, FIRST_LANGUAGE].find((wanted) => languages.some((language) => language.code === wanted));
  return known ?? languages[0].code;
}

export function Choices({ offers, choices, onChoose }) {
  const strategies = offers.conversation.map(({ name, fault }) => ({
    code: name,
    title: fault ? `${name} (not usable)` : name,
    fault,
  }));
  const faults = strategies.filter(({ fault }) => fault);
  return html`<div class="choices">
    <${Choice}
      id="strategy"
      label="Strategy"
      value=${choices.strategy}
      options=${strategies}
      onChoose=${(strategy) => onChoose({ strategy })}
    />
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
    <label class="others">
      <input
        type="checkbox"
        checked=${choices.others}
        onChange=${(event) => onChoose({ others: event.currentTarget.checked })}
      />
      If it fails, fall back on the others
    </label>
    ${faults.map(({ code, fault }) => html`<small key=${code} class="fault">${code}: ${fault}</small>`)}
  </div>`;
}

function Choice({ id, label, value, options, onChoose }) {
  return html`<div>
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => onChoose(event.currentTarget.value)}>
      ${options.map(
        ({ code, title, fault }) => html`<option key=${code} value=${code} disabled=${Boolean(fault)}>${title}</option>`,
      )}
    </select>
  </div>`;
}
