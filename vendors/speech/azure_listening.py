"""Listening with vendor A: audio goes up as it is there while what was heard comes down, turn after turn."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from streams.tasks import background
from vendors.account import Account
from vendors.errors import Garbled, Refused, Unreachable, VendorError
from vendors.protocols import AudioFormat, AudioInput
from vendors.speech.azure_frames import ticks_of
from vendors.speech.azure_line import Line, json_body, line_to
from vendors.speech.azure_sound import PcmFormat, Pieces, pcm_of, wait_s
from vendors.transport import VendorHttp

_HEARTBEAT_S = 20.0
"""A vendor that hears nothing says nothing."""
_SILENT = frozenset({"NoMatch", "InitialSilenceTimeout", "BabbleTimeout", "EndOfDictation"})
_RETRYABLE = frozenset({"Error", "TooManyRequests"})


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What may have been said since the last phrase."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """What was said between two pauses, in the vendor's words; times count from the start of the input."""

    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """What is listened to, and how."""

    audio: AudioInput
    audio_format: AudioFormat
    context: Mapping[str, Any]


@asynccontextmanager
async def listening(
    http: VendorHttp, account: Account, url: str, question: Question, *, connect_s: float
) -> AsyncIterator[AsyncIterator[Hypothesis | Phrase]]:
    async with line_to(http, account, url, connect_s=connect_s, heartbeat_s=_HEARTBEAT_S) as line:
        await line.configure(audio={"source": {"type": "Stream", "connectivity": "Unknown"}})
        async with aclosing(_turns(line, question)) as heard:
            yield heard


def said(vendor: str, phrase: Mapping[str, Any]) -> str:
    """The text of a phrase, empty where nothing was understood; a status that is a fault is raised."""
    status = phrase.get("RecognitionStatus", "Success")
    if status in _SILENT:
        return ""
    if status != "Success":
        told = str(status)[:64]
        raise Refused(vendor, f"broke off with the status {told}", retryable=status in _RETRYABLE)
    best = phrase.get("NBest") or [{}]
    try:
        text = phrase.get("DisplayText") or best[0].get("Display") or ""
    except (AttributeError, KeyError, TypeError):
        text = None
    if not isinstance(text, str):
        raise Garbled(vendor, "sent a phrase of an unknown form")
    return text


async def _turns(line: Line, question: Question) -> AsyncGenerator[Hypothesis | Phrase]:
    """One turn, in general. The vendor may end it before the audio ends: the next one takes up where it stopped."""
    begun = 0
    while True:
        upload = _Upload(line, question, begun)
        async with background(upload.run()):
            try:
                async with aclosing(_turn(line, upload)) as heard:
                    async for item in heard:
                        yield item
            except VendorError:
                if upload.fault is not None:  # that is why the line is closed
                    raise upload.fault from None
                raise
        if upload.fault is not None:
            raise upload.fault
        if upload.ended:
            return
        if upload.understood <= begun:
            raise Garbled(line.vendor, "ended its turn before the audio's end", retryable=True)
        begun = upload.understood
        line.new_turn()


async def _turn(line: Line, upload: "_Upload") -> AsyncGenerator[Hypothesis | Phrase]:
    async with aclosing(line.frames()) as frames:
        async for frame in frames:
            match frame.path:
                case "speech.hypothesis" | "speech.fragment":
                    yield Hypothesis(str(json_body(line.vendor, frame).get("Text") or ""))
                case "speech.phrase":
                    yield Phrase(upload.place(json_body(line.vendor, frame)))
                case "turn.end":
                    return


class _Upload:
    """The way up of one turn, from byte `begun` of the samples on."""

    def __init__(self, line: Line, question: Question, begun: int) -> None:
        self.ended = False
        self.fault: Exception | None = None
        """Of the input: the line was closed for it."""
        self.understood = begun
        """Up to which byte phrases have come back."""
        self._line = line
        self._question = question
        self._begun = begun
        self._pcm: PcmFormat | None = None

    async def run(self) -> None:
        """Send the turn's context and its audio; whatever fails is met by who reads the line."""
        try:
            with suppress(Unreachable):  # the vendor hung up and has said why
                await self._send()
        except Exception as error:  # noqa: BLE001 - raised by the reader, who would wait for ever
            self.fault = error
            await self._line.hang_up()

    def place(self, phrase: dict[str, Any]) -> dict[str, Any]:
        """The phrase with its times counted from the start of the input."""
        if self._pcm is None:
            return phrase
        base = self._pcm.ticks(self._begun)
        try:
            placed = {**_shifted(phrase, base), "Offset": ticks_of(phrase, "Offset") + base}
            end = placed["Offset"] + ticks_of(placed, "Duration")
        except (TypeError, ValueError):
            raise Garbled(self._line.vendor, "sent a phrase of an unknown form") from None
        self.understood = max(self.understood, self._pcm.offset(end))
        return placed

    async def _send(self) -> None:
        question, line = self._question, self._line
        await line.say_json("speech.context", question.context)
        pieces = Pieces(skip=self._begun)
        clock = asyncio.get_running_loop().time
        begun_s = clock()
        sent = 0
        async with aclosing(pcm_of(line.vendor, question.audio, question.audio_format)) as samples:
            async for pcm, piece in samples:
                if self._pcm is None:
                    self._pcm = pcm
                    await line.send_audio(pcm.header(), content_type="audio/x-wav")
                for ready in pieces.feed(pcm, piece):
                    if pause := wait_s(sent / pcm.bytes_per_s, clock() - begun_s):
                        await asyncio.sleep(pause)
                    await line.send_audio(ready)
                    sent += len(ready)
        if self._pcm is None:
            raise Refused(line.vendor, "takes no empty audio")
        self.ended = True
        await line.send_audio(b"")


def _shifted(value: Any, base: int) -> Any:
    """`value` with the times in it moved by `base`; what lasts no time was not heard, and stays."""
    if isinstance(value, list):
        return [_shifted(item, base) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {name: _shifted(item, base) for name, item in value.items()}
    if base and ticks_of(value, "Duration"):
        moved["Offset"] = ticks_of(value, "Offset") + base
    return moved
