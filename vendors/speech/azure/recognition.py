"""Continuous recognition by vendor A: uploads audio as it arrives and reads results, turn after turn."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from streams.tasks import background
from vendors.account import Account
from vendors.errors import Garbled, Refused, Unreachable, VendorError
from vendors.http.transport import VendorHttp
from vendors.json_events import objects_of, text_of
from vendors.protocols import AudioFormat, AudioInput
from vendors.speech.azure.audio import Chunker, PcmFormat, read_pcm, send_delay_s
from vendors.speech.azure.frames import ticks_of
from vendors.speech.azure.sockets import SpeechSocket, json_body, open_speech_socket

_HEARTBEAT_S = 20.0
"""WebSocket pings are needed because the vendor sends nothing during silence."""
_NO_SPEECH = frozenset({"NoMatch", "InitialSilenceTimeout", "BabbleTimeout", "EndOfDictation"})
_RETRYABLE = frozenset({"Error", "TooManyRequests"})


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A provisional text of the speech since the last phrase."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """The vendor's result for the speech between two pauses. Times count from the start of the input."""

    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecognitionRequest:
    """The audio to recognize, and the vendor's `speech.context` message."""

    audio: AudioInput
    audio_format: AudioFormat
    context: Mapping[str, Any]


@asynccontextmanager
async def open_recognition(
    http: VendorHttp, account: Account, url: str, request: RecognitionRequest, *, connect_s: float
) -> AsyncIterator[AsyncIterator[Hypothesis | Phrase]]:
    async with open_speech_socket(http, account, url, connect_s=connect_s, heartbeat_s=_HEARTBEAT_S) as socket:
        await socket.configure(audio={"source": {"type": "Stream", "connectivity": "Unknown"}})
        async with aclosing(_turns(socket, request)) as results:
            yield results


def phrase_text(vendor: str, phrase: Mapping[str, Any]) -> str:
    """Return the text of a phrase, empty if no speech was recognized. Raise `Refused` for an error status."""
    status = phrase.get("RecognitionStatus")
    if isinstance(status, str) and status not in {"", "Success"}:
        if status in _NO_SPEECH:
            return ""
        raise Refused(vendor, f"broke off with the status {status[:64]}", retryable=status in _RETRYABLE)
    texts = [phrase.get("DisplayText"), *(best.get("Display") for best in objects_of(phrase.get("NBest")))]
    return next(filter(None, map(text_of, texts)), "")


def is_unread(phrase: Mapping[str, Any]) -> bool:
    """Return whether a phrase of which no text was read has one in a shape that is not understood."""
    display, best = phrase.get("DisplayText"), phrase.get("NBest")
    has_odd_text = bool(display) and not isinstance(display, str)
    return phrase.get("RecognitionStatus") == "Success" and (has_odd_text or bool(best and not objects_of(best)))


async def _turns(socket: SpeechSocket, request: RecognitionRequest) -> AsyncGenerator[Hypothesis | Phrase]:
    """Yield the results of all turns, usually one.

    The vendor may end a turn before the audio ends. The next turn then starts at the end of the last phrase.
    """
    start = 0
    while True:
        upload = _Upload(socket, request, start)
        async with background(upload.run()):
            try:
                async with aclosing(_turn(socket, upload)) as results:
                    async for item in results:
                        yield item
            except VendorError:
                if upload.fault is not None:  # The upload has closed the socket.
                    raise upload.take_fault() from None
                raise
        if upload.fault is not None:
            raise upload.take_fault()
        if upload.ended:
            return
        if upload.recognized_bytes <= start:
            raise Garbled(socket.vendor, "ended its turn before the end of the audio", retryable=True)
        start = upload.recognized_bytes
        socket.new_turn()


async def _turn(socket: SpeechSocket, upload: "_Upload") -> AsyncGenerator[Hypothesis | Phrase]:
    async with aclosing(socket.frames()) as frames:
        async for frame in frames:
            match frame.path:
                case "speech.hypothesis" | "speech.fragment":
                    yield Hypothesis(text_of(json_body(socket.vendor, frame).get("Text")))
                case "speech.phrase":
                    yield Phrase(upload.shift_times(json_body(socket.vendor, frame)))
                case "turn.end":
                    return


class _Upload:
    """Uploads the audio of one turn, from byte `start` of the samples."""

    def __init__(self, socket: SpeechSocket, request: RecognitionRequest, start: int) -> None:
        self.ended = False
        self.fault: Exception | None = None
        """The error of the input, after which the socket was closed."""
        self.recognized_bytes = start
        """The end of the last phrase, as a byte offset of the samples."""
        self._socket = socket
        self._request = request
        self._start = start
        self._sent_bytes = 0
        self._pcm: PcmFormat | None = None

    async def run(self) -> None:
        """Send the context and the audio of the turn. A failure is stored in `fault` and closes the socket."""
        try:
            with suppress(Unreachable):  # The vendor closed the socket; reading it gives the reason.
                await self._send()
        except Exception as error:  # noqa: BLE001 - stored, and raised by the reader
            self.fault = error
            await self._socket.close()

    def take_fault(self) -> Exception:
        """Return the error of the input. It is not kept, because its traceback will refer to this object."""
        fault, self.fault = self.fault, None
        assert fault is not None, "called after a failure"
        return fault

    def shift_times(self, phrase: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the phrase with times that count from the start of the input."""
        if self._pcm is None or not phrase:
            return phrase
        base = self._pcm.ticks(self._start)
        shifted = {**_shifted(phrase, base), "Offset": ticks_of(phrase, "Offset") + base}
        end = self._pcm.offset(shifted["Offset"] + ticks_of(shifted, "Duration"))
        self.recognized_bytes = max(self.recognized_bytes, min(end, self._start + self._sent_bytes))
        return shifted

    async def _send(self) -> None:
        request, socket = self._request, self._socket
        await socket.send_json("speech.context", request.context)
        chunker = Chunker(skip=self._start)
        clock = asyncio.get_running_loop().time
        start_s = clock()
        async with aclosing(read_pcm(socket.vendor, request.audio, request.audio_format)) as samples:
            async for pcm, piece in samples:
                if self._pcm is None:
                    self._pcm = pcm
                    await socket.send_audio(pcm.header(), content_type="audio/x-wav")
                for ready in chunker.feed(pcm, piece):
                    if pause := send_delay_s(self._sent_bytes / pcm.bytes_per_s, clock() - start_s):
                        await asyncio.sleep(pause)
                    self._sent_bytes += len(ready)
                    await socket.send_audio(ready)
        if self._pcm is None:
            raise Refused(socket.vendor, "does not accept empty audio")
        self.ended = True
        await socket.send_audio(b"")


def _shifted(value: Any, base: int) -> Any:
    """Return `value` with all times in it moved by `base`. Those with no duration, such as omitted words, stay."""
    if isinstance(value, list):
        return [_shifted(item, base) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {name: _shifted(item, base) for name, item in value.items()}
    if base and ticks_of(value, "Duration"):
        moved["Offset"] = ticks_of(value, "Offset") + base
    return moved
