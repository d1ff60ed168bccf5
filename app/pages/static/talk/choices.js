// The user's choices among the offers of the app: strategies, languages, a voice, values for the system prompt.

import { languageChoices } from "./languages.js";

/** Of the development app. It needs no key, unlike others that may precede it. */
export const LOCAL_STRATEGY = "local";
const FIRST_LANGUAGE = "en-US";

/** Return the effective choices. Choices in `chosen` that are no longer offered are replaced. */
export function effectiveChoices(chosen, offers) {
  const usable = offers.conversation.filter(({ fault }) => !fault);
  const fallback =
    usable.find(({ name }) => name === LOCAL_STRATEGY) ?? usable.find(({ hears, speaks }) => hears && speaks) ?? usable[0];
  const strategy = usable.find(({ name }) => name === chosen.strategy) ?? fallback;
  const heard = languageChoices(strategy?.heard_languages);
  const spoken = languageChoices(strategy?.spoken_languages);
  const order = orderOf(usable.map(({ name }) => name).filter((name) => name !== strategy?.name), chosen.order ?? []);
  return {
    strategy: strategy?.name ?? "",
    language: effectiveLanguage(heard, chosen.language),
    answerLanguage: effectiveLanguage(spoken, chosen.answerLanguage),
    others: chosen.others ?? false,
    order,
    skipped: chosen.skipped ?? [],
    voice: chosen.voice ?? "",
    params: chosen.params ?? "",
    hears: strategy?.hears ?? false,
    speaks: strategy?.speaks ?? false,
    strategies: [strategy?.name, ...(chosen.others ? order.filter((name) => !chosen.skipped?.includes(name)) : [])].filter(Boolean),
    heard,
    spoken,
  };
}

/** Return `{values}`, the values for the system prompt, from the JSON of an object. They are null if there are none. */
export function parametersIn(text) {
  try {
    const values = JSON.parse(text);
    const isObject = typeof values === "object" && values !== null && !Array.isArray(values);
    return { values: isObject ? values : null };
  } catch {
    return { values: null };
  }
}

/** Return the offered names in the chosen order. Those that were not ordered come last. */
function orderOf(names, chosen) {
  const known = chosen.filter((name) => names.includes(name));
  return [...known, ...names.filter((name) => !known.includes(name))];
}

function effectiveLanguage(languages, code) {
  const known = [code, FIRST_LANGUAGE].find((candidate) => languages.some((language) => language.code === candidate));
  return known ?? languages[0].code;
}
