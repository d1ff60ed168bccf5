// The user's choices among the offers of the app: a strategy, and the languages of the user and of the answers.

import { html } from "../vendor/preact.js";
import { languageChoices } from "./languages.js";

const FIRST_STRATEGY = "local"; // Of the development app. It needs no key, unlike others that may precede it.
const FIRST_LANGUAGE = "en-US";

/** Return the effective choices. Choices in `chosen` that are no longer offered are replaced. */
export function effectiveChoices(chosen, offers) {
  const usable = offers.conversation.filter(({ fault }) => !fault);
  const fallback =
    usable.find(({ name }) => name === FIRST_STRATEGY) ?? usable.find(({ hears, speaks }) => hears && speaks) ?? usable[0];
  const strategy = usable.find(({ name }) => name === chosen.strategy) ?? fallback;
  const heard = languageChoices(strategy?.heard_languages);
  const spoken = languageChoices(strategy?.spoken_languages);
  return {
    strategy: strategy?.name ?? "",
    language: effectiveLanguage(heard, chosen.language),
    answerLanguage: effectiveLanguage(spoken, chosen.answerLanguage),
    others: chosen.others ?? false,
    hears: strategy?.hears ?? false,
    speaks: strategy?.speaks ?? false,
    strategies: [strategy?.name, ...(chosen.others ? usable.map(({ name }) => name) : [])].filter(
      (name, at, names) => name && names.indexOf(name) === at,
    ),
    heard,
    spoken,
  };
}

function effectiveLanguage(languages, code) {
  const known = [code, FIRST_LANGUAGE].find((candidate) => languages.some((language) => language.code === candidate));
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
      Fall back to the other strategies if it fails
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
