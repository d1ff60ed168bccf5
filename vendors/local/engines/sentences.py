"""Synthesizes a text sentence by sentence, so that requests share an engine and audio starts early."""

from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TypeVar

from streams.spoken.splitting import Sentences
from vendors.local.engines.engine import Engine, Put
from vendors.local.engines.protocols import Spoken

Loaded = TypeVar("Loaded")
Say = Callable[[str, Loaded, Put[Spoken]], None]
"""Synthesizes one sentence. Offsets count from the start of the sentence."""

BYTES_PER_SAMPLE = 2


async def synthesize(
    engine: Engine[Loaded], say: Say[Loaded], text: str, *, language: str, sample_rate: int
) -> AsyncGenerator[Spoken, None]:
    """Yield the speech of `text` in pieces as they are ready. Offsets count from the start of the text."""
    samples = 0
    for sentence in _sentences(text, language):
        begin_ms = samples * 1000 // sample_rate
        async with engine.run(partial(say, sentence)) as output:
            async for ready in output:
                piece = _merge(ready, begin_ms)
                samples += len(piece.pcm) // BYTES_PER_SAMPLE
                yield piece


def _sentences(text: str, language: str) -> list[str]:
    splitter = Sentences(language)
    sentences = [*splitter.feed(text), *splitter.finish()]
    return [sentence for sentence in sentences if sentence.strip()]


def _merge(pieces: list[Spoken], begin_ms: int) -> Spoken:
    return Spoken(
        b"".join(piece.pcm for piece in pieces),
        [(phoneme, begin_ms + offset_ms) for piece in pieces for phoneme, offset_ms in piece.phonemes],
    )
