// The sounds of English: how vendors name them, the sign of the International Phonetic Alphabet, a word that has the sound,
// and how it is made. The names are those of CMU's dictionary (http://www.speech.cs.cmu.edu/cgi-bin/cmudict), which
// vendors write in lower case.

const SOUNDS = {
  aa: ["ɑ", "father", "Open your mouth wide and keep the tongue low."],
  ae: ["æ", "cat", "Open your mouth wide and push the tongue forward."],
  ah: ["ʌ", "cup", "Relax the mouth. The sound is short."],
  ao: ["ɔ", "law", "Round your lips a little and keep the tongue low."],
  aw: ["aʊ", "now", "Begin with an open mouth and end with round lips."],
  ax: ["ə", "about", "Relax everything. It is the shortest vowel."],
  ay: ["aɪ", "my", "Begin with an open mouth and end with a smile."],
  b: ["b", "bad", "Close your lips, then let go. Use your voice."],
  ch: ["tʃ", "chair", "Begin like t and end like sh."],
  d: ["d", "day", "Touch the ridge behind the upper teeth, then let go. Use your voice."],
  dh: ["ð", "this", "Put the tip of the tongue between your teeth. Use your voice."],
  eh: ["ɛ", "bed", "Open your mouth half and push the tongue forward."],
  er: ["ɝ", "bird", "Curl the tongue back a little and round your lips."],
  ey: ["eɪ", "day", "Begin with eh and end with a smile."],
  f: ["f", "fish", "Put the upper teeth on the lower lip and blow."],
  g: ["ɡ", "go", "Raise the back of the tongue, then let go. Use your voice."],
  h: ["h", "house", "Breathe out, without any other sound."],
  ih: ["ɪ", "sit", "It is short. Do not smile as for ee."],
  iy: ["i", "see", "Smile. It is long."],
  jh: ["dʒ", "job", "Begin like d and end like the s of pleasure."],
  k: ["k", "key", "Raise the back of the tongue, then let go with a puff of air."],
  l: ["l", "light", "Touch the ridge behind the upper teeth, and let air pass at the sides."],
  m: ["m", "man", "Close your lips and hum."],
  n: ["n", "no", "Touch the ridge behind the upper teeth and hum."],
  ng: ["ŋ", "sing", "Raise the back of the tongue and hum. There is no g after it."],
  ow: ["oʊ", "go", "Begin with a half open mouth and end with round lips."],
  oy: ["ɔɪ", "boy", "Begin with round lips and end with a smile."],
  p: ["p", "pen", "Close your lips, then let go with a puff of air."],
  r: ["ɹ", "red", "Curl the tongue back. It touches nothing."],
  s: ["s", "sun", "Keep the tongue behind the teeth and hiss."],
  sh: ["ʃ", "she", "Round your lips and hiss."],
  t: ["t", "tea", "Touch the ridge behind the upper teeth, then let go with a puff of air."],
  th: ["θ", "think", "Put the tip of the tongue between your teeth and blow."],
  uh: ["ʊ", "book", "Round your lips a little. It is short."],
  uw: ["u", "too", "Round your lips tightly. It is long."],
  v: ["v", "very", "Put the upper teeth on the lower lip. Use your voice."],
  w: ["w", "we", "Round your lips tightly, then open them. The teeth touch nothing."],
  y: ["j", "yes", "Raise the tongue as for ee, then move on at once."],
  z: ["z", "zoo", "Hiss like a bee: as for s, with your voice."],
  zh: ["ʒ", "pleasure", "Round your lips and hiss, with your voice."],
};
// Words that have a short form in fluent speech, as they are said alone.
const ALONE = { and: "ænd", are: "ɑɹ", as: "æz", at: "æt", can: "kæn", for: "fɔɹ", to: "tu", your: "jɔɹ" };
const SHORT_VOWELS = new Set(["ə", "ʌ", "ɝ", "ɪ"]);
const VOWEL = /^[aeiouæɑɔəɛɜɝɪʊʌ]/;

const ALIASES = { hh: "h", axr: "er" };

/** Return `{sign, example, hint}` for the name of a sound. Names of other languages and IPA signs are their own sign. */
export function soundOf(name) {
  const lower = name.toLowerCase().replace(/\d$/, ""); // The digit is the stress.
  const [sign, example = "", hint = ""] = SOUNDS[ALIASES[lower] ?? lower] ?? bySign(name) ?? [name];
  return { sign, example, hint };
}

/** Return how a word is said alone if `signs`, its sounds, are its short form, else null. */
export function alone(word, signs) {
  const vowels = signs.filter((sign) => VOWEL.test(sign));
  const isShort = vowels.length > 0 && vowels.every((sign) => SHORT_VOWELS.has(sign));
  return (isShort && ALONE[word.toLowerCase()]) || null;
}

const bySign = (name) => Object.values(SOUNDS).find(([sign]) => sign === name);
