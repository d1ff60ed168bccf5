// The result of an assessment as the page shows it: how clear each word and sound was, and what to practise.

import { soundOf } from "./sounds.js";

const GOOD = 80;
const FAIR = 60;

/** What each mark is called and, so that no colour is needed, its sign. */
export const MARKS = {
  good: { title: "clear", sign: "✓" },
  fair: { title: "almost", sign: "~" },
  poor: { title: "unclear", sign: "✗" },
  omitted: { title: "not said", sign: "−" },
  inserted: { title: "not in the text", sign: "+" },
};
const SCORES = {
  AccuracyScore: "Sounds",
  FluencyScore: "Flow",
  CompletenessScore: "Words said",
  ProsodyScore: "Melody",
};
const TICKS_PER_S = 10_000_000;

/**
 * Return `{overall, scores, words}` for the response to an assessment with scores up to 100. `overall` and each entry of
 * `scores` are `{title, score, mark}`; a word is `{text, score, mark, from_s, to_s, sounds}`; a sound is
 * `{name, sign, example, hint, score, mark, heard}`, where `heard` is the sound that was heard instead, or null.
 */
export function gradesOf(result) {
  const best = result.raw_data.NBest?.[0] ?? {};
  const found = scoresOf(best);
  return {
    overall: { title: "Overall", ...graded(found.PronScore ?? found.AccuracyScore ?? 0) },
    scores: Object.entries(SCORES)
      .filter(([name]) => found[name] !== undefined)
      .map(([name, title]) => ({ title, ...graded(found[name]) })),
    words: (best.Words ?? []).map(wordOf),
  };
}

/** Return the index of the word to practise first: the least clear one that was said. */
export function weakest(words) {
  const said = words.filter(({ mark, sounds }) => mark !== "omitted" && mark !== "inserted" && sounds.length > 0);
  const lowest = said.reduce((one, other) => (other.score < one.score ? other : one), said[0]);
  return words.indexOf(lowest);
}

/** The words of the sentence that were not clear. */
export const toPractise = (words) => words.filter(({ mark }) => mark !== "good" && mark !== "inserted");

function wordOf(word) {
  const { AccuracyScore: score, ErrorType: error } = scoresOf(word);
  const { mark, ...rest } = graded(score ?? 0);
  return {
    text: word.Word,
    ...rest,
    mark: { Omission: "omitted", Insertion: "inserted" }[error] ?? mark,
    from_s: (word.Offset ?? 0) / TICKS_PER_S,
    to_s: ((word.Offset ?? 0) + (word.Duration ?? 0)) / TICKS_PER_S,
    sounds: (word.Phonemes ?? []).map(soundIn),
  };
}

function soundIn(phoneme) {
  const { AccuracyScore, NBestPhonemes = [] } = scoresOf(phoneme);
  const grade = graded(AccuracyScore ?? 0);
  const nearest = NBestPhonemes[0]?.Phoneme;
  const other = nearest !== undefined && nearest !== phoneme.Phoneme && grade.mark !== "good";
  return { name: phoneme.Phoneme, ...soundOf(phoneme.Phoneme), ...grade, heard: other ? soundOf(nearest) : null };
}

/** Some vendors nest the scores under `PronunciationAssessment`, others put them into the object itself. */
const scoresOf = (part) => part.PronunciationAssessment ?? part;

function graded(score) {
  const shown = Math.round(score);
  return { score: shown, mark: shown >= GOOD ? "good" : shown >= FAIR ? "fair" : "poor" };
}
