"""Where in the audio words and their sounds are, and how well they fit: pocketsphinx, searching."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from vendors.local.lexicon import Lexicon, Speller
from vendors.local.plan import Kind, Slot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FRAMES_A_SECOND = 100
_SAMPLES_A_FRAME = 160
_SILENCE_FRAMES = 20
"""Put before and behind: a word that begins at once is cut by the front end else."""
_LEFT_OUT, _PUT_IN = 0.05, 0.3
"""How likely it is that a word of the reference was not said where it was not heard, and one that was heard was."""
_MOST_ADDED = 5_000
_SKIP = "(NULL)"
_VARIANT = re.compile(r"\(\d+\)$")

_EVERYTHING = 0.0
_FREE_BEAM = 1e-20


@dataclass(frozen=True, slots=True)
class Sound:
    """A phoneme; its goodness is 0 where nothing fits the audio better, and below where something does."""

    phone: str
    begin: int
    frames: int
    goodness: float


class Aligner:
    """Two searches over the same audio: for given words, and for whatever phonemes fit best."""

    def __init__(self) -> None:
        from pocketsphinx import Decoder, get_model_path  # noqa: PLC0415 - an extra

        phones = get_model_path("en-us/en-us-phone.lm.bin")
        self._free: Any = Decoder(
            loglevel="FATAL", lm=None, allphone=phones, beam=_FREE_BEAM, pbeam=_FREE_BEAM, lw=0.0, pip=1.0
        )
        self._speller = Speller()  # its library is begun once a process
        self._renew()

    def align(self, slots: Sequence[Slot], pcm: bytes) -> list[list[Sound]]:
        """The sounds of every slot in order, of those that were said; frames from the start of `pcm`."""
        if self._lexicon.added > _MOST_ADDED:
            self._renew()
        names = self._names(slots)
        silence = bytes(2 * _SILENCE_FRAMES * _SAMPLES_A_FRAME)
        padded = silence + pcm + silence
        found = self._search(slots, names, padded)
        if not found:
            return [[] for _ in slots]
        best = self._best(padded)
        return [self._sounds(found[name], best) if name in found else [] for name in names]

    def _renew(self) -> None:
        """Words that were added are never forgotten else."""
        from pocketsphinx import Decoder  # noqa: PLC0415 - an extra

        decoder = Decoder(
            loglevel="FATAL", lm=None, bestpath=False, beam=_EVERYTHING, wbeam=_EVERYTHING, pbeam=_EVERYTHING
        )
        self._words: Any = decoder
        self._lexicon = Lexicon(decoder.lookup_word, partial(decoder.add_word, update=False), self._speller)

    def _names(self, slots: Sequence[Slot]) -> list[str | None]:
        """The decoder's names of the words that are searched."""
        places: Counter[str] = Counter()
        names: list[str | None] = []
        alike = set(self._said_alike(slots))
        for at, slot in enumerate(slots):
            sought = slot.tried and at not in alike and bool(self._lexicon.sounds(slot.word))
            names.append(self._lexicon.name(slot.word, places[slot.word]) if sought else None)
            places[slot.word] += sought
        return names

    def _said_alike(self, slots: Sequence[Slot]) -> Iterator[int]:
        """Heard words that sound as those of the reference in their place: `their` for `there`, `five` for `5`."""
        for fits, run in groupby(enumerate(slots), lambda numbered: numbered[1].kind is Kind.FITS):
            if fits:
                continue
            doubtful = [(at, slot) for at, slot in run if slot.tried]
            missing = [slot.word for _, slot in doubtful if slot.kind is Kind.MISSING]
            extra = [(at, slot.word) for at, slot in doubtful if slot.kind is Kind.EXTRA]
            if missing and extra and self._joined(missing) == self._joined([word for _, word in extra]):
                yield from (at for at, _ in extra)

    def _joined(self, words: Sequence[str]) -> str:
        return " ".join(sounds[0] for word in words if (sounds := self._lexicon.sounds(word)))

    def _search(self, slots: Sequence[Slot], names: Sequence[str | None], pcm: bytes) -> dict[str, Any]:
        """The words that were found, by name, with their phonemes; nothing where they do not fit in."""
        transitions: list[tuple[int, int, float] | tuple[int, int, float, str]] = []
        state = 0
        for slot, name in zip(slots, names, strict=True):
            if name is None:
                continue
            taken = _PUT_IN if slot.kind is Kind.EXTRA else 1.0
            transitions.append((state, state + 1, taken, name))
            if not slot.sure:
                transitions.append((state, state + 1, 1.0 if slot.kind is Kind.EXTRA else _LEFT_OUT))
            state += 1
        if not transitions:
            return {}
        decoder = self._words
        decoder.add_fsg("slots", decoder.create_fsg("slots", 0, state, transitions))
        decoder.activate_search("slots")
        _run(decoder, pcm)
        if decoder.hyp() is None:
            return {}
        path = [segment.word for segment in decoder.seg()]
        words = [_VARIANT.sub("", word) for word in path if word.startswith("~")]
        if not words:
            return {}
        if _SKIP in path:  # which has no sounds to be found
            decoder.set_align_text(" ".join(words))
            _run(decoder, pcm)
            if decoder.hyp() is None:
                return {}
        decoder.set_alignment()
        _run(decoder, pcm)
        return {_VARIANT.sub("", word.name): list(word) for word in decoder.get_alignment()}

    def _best(self, pcm: bytes) -> "NDArray[np.float64]":
        """The score of the best phoneme in each frame."""
        import numpy as np  # noqa: PLC0415 - an extra

        _run(self._free, pcm)
        best = np.full(len(pcm) // (2 * _SAMPLES_A_FRAME) + 2, np.nan)
        for segment in self._free.seg():
            frames = segment.end_frame - segment.start_frame + 1
            best[segment.start_frame : segment.end_frame + 1] = segment.ascore / frames
        return best

    def _sounds(self, phones: Sequence[Any], best: "NDArray[np.float64]") -> list[Sound]:
        return [
            Sound(
                phone.name,
                max(0, phone.start - _SILENCE_FRAMES),
                phone.duration,
                _goodness(phone, best[phone.start : phone.start + phone.duration]),
            )
            for phone in phones
        ]


def _run(decoder: Any, pcm: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(pcm, False, True)  # noqa: FBT003 - its parameters have no names
    decoder.end_utt()


def _goodness(phone: Any, best: "NDArray[np.float64]") -> float:
    import numpy as np  # noqa: PLC0415 - an extra

    known = best[~np.isnan(best)]
    return min(0.0, phone.score / max(1, phone.duration) - float(known.mean())) if len(known) else 0.0
