"""What is spoken of an answer in Markdown.

An answer arrives in deltas. `lines` recognizes the kind of each line from its beginning, `labels` the items that
Markdown does not know, and `fences` where code begins and ends. `sentences` splits prose into sentences, and leaves
out what nobody would read aloud. `inline` removes the markup within a sentence, `html_tags` its tags, and `powers`
keeps what only looks like emphasis. `formulas` turns LaTeX into characters that voices read, and `words` has the
words for signs in tables.

The state is that of the whole answer, because code and lists continue over paragraphs. Blocks are those of
CommonMark 0.31 and of GitHub's tables, as far as they matter to a listener.
"""
