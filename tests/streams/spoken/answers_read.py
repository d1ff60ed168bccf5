"""What is spoken of an answer that arrives in deltas, paragraph by paragraph, as in a conversation."""

from collections.abc import Iterable
from pathlib import Path

from streams.events import AssistantOutputContentSegment
from streams.paragraphs import Paragraphs
from streams.spoken.sentences import SpokenSentences

ANSWERS = sorted(Path(__file__).with_name("answers").glob("*.md"))
"""Each has a file `.txt` with what is spoken of it, line by line."""


def text_and_language(answer: Path) -> tuple[str, str]:
    """Return the text of an answer, and the language in its name."""
    return answer.read_text(), answer.stem.partition(".")[2][:2]


def spoken(deltas: Iterable[str], language: str) -> list[str]:
    paragraphs, sentences = Paragraphs("\n\n"), SpokenSentences(language)
    texts = []
    for delta in [*deltas, None]:
        for part in paragraphs.finish() if delta is None else paragraphs.feed(delta):
            is_end = isinstance(part, AssistantOutputContentSegment)
            texts += [each.text for each in (sentences.finish() if is_end else sentences.feed(part.text))]
    return [text for text in texts if text]
