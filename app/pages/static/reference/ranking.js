// Which operations a search finds, and in which order.

/** Return the operations that match all words of `query`, the best first. `operations` are in the order of the page. */
export function found(operations, query) {
  const words = wordsOf(query);
  if (!words.length) return [];
  return operations
    .map((operation) => ({ operation, score: scoreOf(operation, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .map(({ operation }) => operation);
}

function scoreOf(operation, words) {
  const scores = words.map((word) => scoreOfWord(operation, word));
  // "login" and "log in" are the same.
  const isTitle = joined(wordsOf(operation.title)) === joined(words);
  if (isTitle) return operation.group.title === "App servers" ? 900 : 1_000;
  if (scores.includes(0)) return 0;
  // Of an endpoint for apps and for app servers, the first is what most look for.
  return scores.reduce((sum, score) => sum + score) * (operation.group.title === "App servers" ? 0.9 : 1);
}

function scoreOfWord(operation, word) {
  const title = wordsOf(operation.title);
  const parts = wordsOf(operation.path.replace(/\{[^}]*\}/g, ""));
  return (
    12 * match([parts.at(-1) ?? ""], word) +
    8 * match(title, word) +
    6 * match(title.slice(0, 1), word) +
    5 * match(parts, word) +
    3 * match(wordsOf(operation.section.title), word) +
    2 * match([operation.method.toLowerCase()], word) +
    0.5 * match(wordsOf(operation.description), word)
  );
}

/** Return 1 if `word` is one of `words`, less if one of them begins with it, and 0 otherwise. */
function match(words, word) {
  if (words.includes(word)) return 1;
  return word.length > 1 && words.some((one) => one.startsWith(word)) ? 0.6 : 0;
}

function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

function joined(words) {
  return words.join("");
}
