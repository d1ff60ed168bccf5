// Sentences to read aloud, and what each of them practises.

export const SENTENCES = [
  { text: "Good morning. How are you today?", practises: "A greeting" },
  { text: "I think that there are three things on this path.", practises: "The two sounds of th" },
  { text: "She sells sea shells by the sea shore.", practises: "s and sh" },
  { text: "A red lorry and a yellow lorry drove along the river.", practises: "r and l" },
  { text: "We would love a very warm winter evening.", practises: "v and w" },
  { text: "Could you tell me the way to the railway station, please?", practises: "A question" },
];

/** Return the text of the sentence after `text`. After the last one, and after any other text, the first one follows. */
export const nextSentence = (text) => SENTENCES[(SENTENCES.findIndex((each) => each.text === text) + 1) % SENTENCES.length].text;
