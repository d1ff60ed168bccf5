// The languages to choose from: those that a strategy lists, or common ones.

const COMMON = [
  ...["en-US", "en-GB", "ar-SA", "de-DE", "es-ES", "es-MX", "fr-FR", "hi-IN", "id-ID", "it-IT", "ja-JP", "ko-KR"],
  ...["nl-NL", "pl-PL", "pt-BR", "pt-PT", "ru-RU", "sv-SE", "tr-TR", "uk-UA", "vi-VN", "zh-CN", "zh-TW"],
];

const names = new Intl.DisplayNames(["en"], { type: "language" });

/** Return the choices `{code, title}` for the languages of an offer: `en` includes every `en-…`; null means any. */
export function languageChoices(languages) {
  return (languages ? languages.flatMap(variants) : COMMON).map((code) => ({ code, title: title(code) }));
}

function variants(language) {
  const common = COMMON.filter((code) => code.toLowerCase().startsWith(`${language.toLowerCase()}-`));
  return common.length ? common : [language];
}

function title(code) {
  try {
    return names.of(code) ?? code;
  } catch {
    return code; // A config may contain a code that the browser does not know.
  }
}
