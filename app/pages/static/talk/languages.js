// Languages to choose from: those that a strategy names, or those that many people speak.

const COMMON = [
  ...["en-US", "en-GB", "ar-SA", "de-DE", "es-ES", "es-MX", "fr-FR", "hi-IN", "id-ID", "it-IT", "ja-JP", "ko-KR"],
  ...["nl-NL", "pl-PL", "pt-BR", "pt-PT", "ru-RU", "sv-SE", "tr-TR", "uk-UA", "vi-VN", "zh-CN", "zh-TW"],
];

const names = new Intl.DisplayNames(["en"], { type: "language" });

/** Choices as `{code, title}` out of what an offer says: codes, of which `en` stands for every `en-…`; none: any. */
export function languageChoices(languages) {
  return (languages ? languages.flatMap(spoken) : COMMON).map((code) => ({ code, title: title(code) }));
}

function spoken(language) {
  const common = COMMON.filter((code) => code.toLowerCase().startsWith(`${language.toLowerCase()}-`));
  return common.length ? common : [language];
}

function title(code) {
  try {
    return names.of(code) ?? code;
  } catch {
    return code; // a config may hold a code that browsers do not know
  }
}
