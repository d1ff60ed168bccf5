"""Speech sentence by sentence: a long text shares its engine with others, and begins to sound at once."""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TypeVar

from streams.sentences import Sentences
from vendors.local.engine import Engine, Put
from vendors.local.protocols import Spoken

Loaded = TypeVar("Loaded")
Say = Callable[[str, Loaded, Put[Spoken]], None]
"""Speaks one sentence; offsets from the sentence's own start."""

BYTES_PER_SAMPLE = 2


async def spoken(
    engine: Engine[Loaded], say: Say[Loaded], text: str, *, language: str, sample_rate: int
) -> AsyncGenerator[Spoken, None]:
    """The speech of `text`, in pieces as they are ready; offsets from the start of all."""
    samples = 0
    for sentence in _sentences(text, language):
        begin_ms = samples * 1000 // sample_rate
        async with engine.run(partial(say, sentence)) as output:
            async for ready in output:
                piece = _joined(ready, begin_ms)
                samples += len(piece.pcm) // BYTES_PER_SAMPLE
                yield piece


def _sentences(text: str, language: str) -> list[str]:
    splitter = Sentences(language)
    sentences = [*splitter.feed(text), *splitter.finish()]
    return [sentence for sentence in sentences if sentence.strip()]


def _joined(pieces: list[Spoken], begin_ms: int) -> Spoken:
    return Spoken(
        b"".join(piece.pcm for piece in pieces),
        [(phoneme, begin_ms + offset_ms) for piece in pieces for phoneme, offset_ms in piece.phonemes],
    )
