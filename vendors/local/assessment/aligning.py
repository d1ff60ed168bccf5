"""Finds words and their phonemes in audio with pocketsphinx, and measures how well they fit."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from vendors.local.assessment.lexicon import Lexicon
from vendors.local.assessment.plan import Kind, Slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FRAMES_PER_SECOND = 100
_SAMPLES_PER_FRAME = 160
_SILENCE_FRAMES = 20
"""Silence added before and after the audio. Without it the front end cuts off a word that starts immediately."""
_OMITTED_PROBABILITY, _EXTRA_PROBABILITY = 0.05, 0.3
"""The probability that an unrecognized word of the reference was omitted, and that an extra word was spoken."""
_SKIP = "(NULL)"
_VARIANT = re.compile(r"\(\d+\)$")

_NO_PRUNING = 0.0
_FREE_BEAM = 1e-20


@dataclass(frozen=True, slots=True)
class Sound:
    """A phoneme. Its `goodness` is 0 if no other phoneme fits the audio better, and negative otherwise."""

    phone: str
    begin: int
    frames: int
    goodness: float


class Aligner:
    """Searches the audio twice: for the given words, and for the best-fitting phonemes."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder  # noqa: PLC0415 - an extra

        self._lexicon = Lexicon(Decoder(loglevel="FATAL", lm=None).lookup_word)

    def align(self, slots: Sequence[Slot], pcm: bytes) -> list[list[Sound]]:
        """Return the phonemes of each slot, empty if it was not spoken. Frames count from the start of `pcm`."""
        silence = bytes(2 * _SILENCE_FRAMES * _SAMPLES_PER_FRAME)
        padded = silence + pcm + silence
        decoder = _decoder(bestpath=False, beam=_NO_PRUNING, wbeam=_NO_PRUNING, pbeam=_NO_PRUNING)
        names = self._add_words(decoder, slots)
        alignment = _search(decoder, slots, names, padded)
        if not alignment:
            return [[] for _ in slots]
        best_scores = _best_scores(padded)
        last = len(pcm) // (2 * _SAMPLES_PER_FRAME)
        return [_sounds(alignment[name], best_scores, last) if name in alignment else [] for name in names]

    def _add_words(self, decoder: Any, slots: Sequence[Slot]) -> list[str | None]:
        """Return the decoder's names of the words to search, `None` for slots that are not searched."""
        homophones = set(self._homophones(slots))
        names: list[str | None] = []
        for index, slot in enumerate(slots):
            sounds = self._lexicon.sounds(slot.word) if slot.tried and index not in homophones else ()
            for number, phones in enumerate(sounds, start=1):
                decoder.add_word(f"~{index}" if number == 1 else f"~{index}({number})", phones, update=False)
            names.append(f"~{index}" if sounds else None)
        return names

    def _homophones(self, slots: Sequence[Slot]) -> Iterator[int]:
        """Yield indexes of recognized words that sound like the reference: `their` for `there`, `five` for `5`."""
        for fits, run in groupby(enumerate(slots), lambda numbered: numbered[1].kind is Kind.FITS):
            if fits:
                continue
            doubtful = [(index, slot) for index, slot in run if slot.tried]
            missing = [slot.word for _, slot in doubtful if slot.kind is Kind.MISSING]
            extra = [(index, slot.word) for index, slot in doubtful if slot.kind is Kind.EXTRA]
            if (
                missing
                and extra
                and self._pronunciation(missing) == self._pronunciation([word for _, word in extra])
            ):
                yield from (index for index, _ in extra)

    def _pronunciation(self, words: Sequence[str]) -> str:
        return " ".join(sounds[0] for word in words if (sounds := self._lexicon.sounds(word)))


def _search(decoder: Any, slots: Sequence[Slot], names: Sequence[str | None], pcm: bytes) -> dict[str, Any]:
    """Return the phonemes of the words that were found, by name. Empty if the words do not fit the audio."""
    transitions: list[tuple[int, int, float] | tuple[int, int, float, str]] = []
    state = 0
    for slot, name in zip(slots, names, strict=True):
        if name is None:
            continue
        probability = _EXTRA_PROBABILITY if slot.kind is Kind.EXTRA else 1.0
        transitions.append((state, state + 1, probability, name))
        if not slot.sure:
            transitions.append((state, state + 1, 1.0 if slot.kind is Kind.EXTRA else _OMITTED_PROBABILITY))
        state += 1
    if not transitions:
        return {}
    decoder.add_fsg("slots", decoder.create_fsg("slots", 0, state, transitions))
    decoder.activate_search("slots")
    _run(decoder, pcm)
    if decoder.hyp() is None:
        return {}
    path = [segment.word for segment in decoder.seg()]
    words = [_VARIANT.sub("", word) for word in path if word.startswith("~")]
    if not words:
        return {}
    if _SKIP in path:  # An omitted word cannot be aligned, so align the found words only.
        decoder.set_align_text(" ".join(words))
        _run(decoder, pcm)
        if decoder.hyp() is None:
            return {}
    decoder.set_alignment()
    _run(decoder, pcm)
    return {_VARIANT.sub("", word.name): list(word) for word in decoder.get_alignment()}


def _sounds(phones: Sequence[Any], best_scores: "NDArray[np.float64]", last: int) -> list[Sound]:
    """Return the phonemes of a word, without the added silence. `last` is the frame at which the audio ends."""
    sounds = []
    for phone in phones:
        begin, end = phone.start, phone.start + phone.duration
        heard_from, heard_to = (min(max(0, frame - _SILENCE_FRAMES), last) for frame in (begin, end))
        sounds.append(
            Sound(phone.name, heard_from, heard_to - heard_from, _goodness(phone, best_scores[begin:end]))
        )
    return sounds


def _best_scores(pcm: bytes) -> "NDArray[np.float64]":
    """Return the score of the best-fitting phoneme of each frame; NaN where none was found."""
    import numpy as np  # noqa: PLC0415 - an extra
    from pocketsphinx import get_model_path  # noqa: PLC0415 - an extra

    phones = get_model_path("en-us/en-us-phone.lm.bin")
    decoder = _decoder(allphone=phones, beam=_FREE_BEAM, pbeam=_FREE_BEAM, lw=0.0, pip=1.0)
    _run(decoder, pcm)
    best = np.full(len(pcm) // (2 * _SAMPLES_PER_FRAME) + 2, np.nan)
    for segment in decoder.seg():
        frames = segment.end_frame - segment.start_frame + 1
        best[segment.start_frame : segment.end_frame + 1] = segment.ascore / frames
    return best


def _decoder(**parameters: Any) -> Any:
    """Return a new decoder without words.

    A used one keeps its cepstral means, its last Gaussians and the words that were added: the scores of a recording
    would depend on earlier ones, and its memory would grow. A new one without the dictionary takes 10 ms.
    """
    from pocketsphinx import Decoder  # noqa: PLC0415 - an extra

    return Decoder(loglevel="FATAL", lm=None, dict=None, cmn="batch", **parameters)


def _run(decoder: Any, pcm: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(pcm, False, True)  # noqa: FBT003 - its parameters have no names
    decoder.end_utt()


def _goodness(phone: Any, best: "NDArray[np.float64]") -> float:
    import numpy as np  # noqa: PLC0415 - an extra

    scores = best[~np.isnan(best)]
    return min(0.0, phone.score / max(1, phone.duration) - float(scores.mean())) if len(scores) else 0.0
