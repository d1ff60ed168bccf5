"""The local engines by model name, and the reasons why others are missing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from vendors.local.engines import espeak, piper, pronunciation, smollm2, whisper
from vendors.local.engines.espeak import Espeak
from vendors.local.engines.faults import engine_missing, model_not_found
from vendors.local.engines.packages import Package, first_fault
from vendors.local.engines.piper import Piper
from vendors.local.engines.pronunciation import Pronunciation
from vendors.local.engines.protocols import AssessorEngine, ChatEngine, RecognizerEngine, VoiceEngine
from vendors.local.engines.scripted import Scripted
from vendors.local.engines.smollm2 import SmolLM2
from vendors.local.engines.whisper import Whisper

_NEEDS = {
    "smollm2": smollm2.NEEDS,
    "whisper": whisper.NEEDS,
    "espeak": espeak.NEEDS,
    "piper": piper.NEEDS,
    "pocketsphinx": pronunciation.NEEDS,
    "patterns": (Package("numpy"), Package("PIL")),
}

AnyEngine = TypeVar("AnyEngine", ChatEngine, RecognizerEngine, VoiceEngine, AssessorEngine)


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines by capability. `missing` maps engines that are not installed or are corrupt to the reason."""

    chats: Mapping[str, ChatEngine]
    recognizers: Mapping[str, RecognizerEngine] = field(default_factory=dict)
    voices: Mapping[str, VoiceEngine] = field(default_factory=dict)
    assessors: Mapping[str, AssessorEngine] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def chat(self, model: str) -> ChatEngine:
        return self._named(self.chats, model)

    def recognizer(self, model: str) -> RecognizerEngine:
        return self._named(self.recognizers, model)

    def voice(self, model: str) -> VoiceEngine:
        return self._named(self.voices, model)

    def assessor(self, model: str) -> AssessorEngine:
        return self._named(self.assessors, model)

    def faults(self) -> dict[str, str | None]:
        """Return the fault of every engine, `None` if it works."""
        return {name: engine.fault for name, engine in self._all().items()} | dict(self.missing)

    def close(self) -> None:
        """Wait for running jobs and close all engines."""
        for engine in self._all().values():
            engine.close()

    def _all(self) -> dict[str, ChatEngine | RecognizerEngine | VoiceEngine | AssessorEngine]:
        return {**self.chats, **self.assessors, **self.recognizers, **self.voices}

    def _named(self, engines: Mapping[str, AnyEngine], model: str) -> AnyEngine:
        if model in engines:
            return engines[model]
        if model in self.missing:
            raise engine_missing(model, self.missing[model])
        raise model_not_found(model)


def find_engines(*, pace_ms: int = 20) -> Engines:
    """Find the installed engines and verify their weights.

    Takes about a second, so do not call it in an event loop.
    """
    with ThreadPoolExecutor(len(_NEEDS)) as pool:
        faults = dict(zip(_NEEDS, pool.map(first_fault, _NEEDS.values()), strict=True))
    missing = {name: fault for name, fault in faults.items() if fault is not None}

    def usable(name: str, make: Callable[[], AnyEngine]) -> dict[str, AnyEngine]:
        return {} if name in missing else {name: make()}

    chats: dict[str, ChatEngine] = {"scripted": Scripted(pace_ms)}
    recognizers: dict[str, RecognizerEngine] = usable("whisper", Whisper)
    return Engines(
        chats=chats | usable("smollm2", SmolLM2),
        recognizers=recognizers,
        voices=usable("espeak", Espeak) | usable("piper", Piper),
        assessors=usable("pocketsphinx", lambda: Pronunciation(recognizers["whisper"])),
        missing=missing,
    )


@asynccontextmanager
async def open_engines(*, pace_ms: int) -> AsyncIterator[Engines]:
    engines = await asyncio.to_thread(find_engines, pace_ms=pace_ms)
    try:
        yield engines
    finally:
        await asyncio.to_thread(engines.close)
