"""Speech of a chat model that was told to read a text: its audio, and whether that is what it says. Pure."""

from base64 import b64decode
from difflib import SequenceMatcher
from typing import Any

from streams.wire.codec import loads
from vendors.errors import Garbled, Refused, VendorError, broke_off
from vendors.meter import is_count
from vendors.protocols import Usage
from vendors.speech.samples import Samples
from vendors.sse import SseParser

SAMPLE_RATE = 24_000
_MOST_HELD_BYTES = 2 * SAMPLE_RATE
"""A second of audio waits for the transcript that shows what it says, no more."""
_ENOUGH_LETTERS = 20
_ALIKE = 0.75
_LEAST_SHARE = 0.5


class Reading:
    """A streamed answer. `text` is what is to be read; none: whatever is said is right.

    Audio is held until the transcript, which runs ahead of it, shows that the text is read and not answered.
    """

    def __init__(self, vendor: str, text: str | None) -> None:
        self.done = False
        """The end mark was seen."""
        self.ended = False
        """All is spoken: the model may say no more than when its audio expires."""
        self.usage: Usage | None = None
        self.fault: VendorError | None = None
        self._vendor = vendor
        self._text = text
        self._transcript = ""
        self._held: bytes | None = None if text is None else b""
        self._parser = SseParser()
        self._samples = Samples()

    def feed(self, piece: bytes) -> bytes:
        """The audio that `piece` sets free, up to a fault."""
        audio = b""
        try:
            for event in self._parser.feed(piece):
                if event.data == b"[DONE]":
                    self.done = self.ended = True
                    break
                audio += self._released(self._samples.whole(self._take(loads(event.data))))
        except VendorError as fault:
            self.fault = fault
        except (ValueError, KeyError, TypeError, AttributeError):
            self.fault = Garbled(self._vendor, "sent an event of an unknown form")
        return audio

    def end(self) -> bytes:
        """The audio that is still held; raises what is wrong."""
        if self.fault is not None:
            raise self.fault
        if not self.ended:
            raise Garbled(self._vendor, "ended its speech without its end mark", retryable=True)
        if self._text is not None:
            _check_whole(self._vendor, self._text, self._transcript)
        return self._held or b""

    def _take(self, chunk: dict[str, Any]) -> bytes:
        """The audio of a chunk; it may hold no choice at all."""
        if error := chunk.get("error"):
            raise broke_off(self._vendor, error)
        self.usage = _usage(chunk) or self.usage
        audio = b""
        for choice in chunk.get("choices") or ():
            spoken = (choice.get("delta") or {}).get("audio") or {}
            self._transcript += spoken.get("transcript") or ""
            audio += b64decode(spoken.get("data") or "", validate=True)
            _check_reason(self._vendor, choice.get("finish_reason"))
            self.ended = self.ended or bool(choice.get("finish_reason")) or "expires_at" in spoken
        return audio

    def _released(self, audio: bytes) -> bytes:
        if self._held is None or self._text is None:
            return audio
        self._held += audio
        wanted = min(_ENOUGH_LETTERS, len(_letters(self._text)))
        if len(_letters(self._transcript)) >= wanted:
            _check_beginning(self._vendor, self._text, self._transcript)
        elif len(self._held) < _MOST_HELD_BYTES:
            return b""
        audio, self._held = self._held, None
        return audio


def read_whole(vendor: str, answer: Any, text: str | None) -> tuple[bytes, Usage | None]:
    """Audio and usage of an answer that was not streamed; raises what is wrong."""
    try:
        if error := answer.get("error"):
            raise broke_off(vendor, error)
        choice = answer["choices"][0]
        spoken = choice["message"].get("audio")
        if spoken is None:
            raise Garbled(vendor, "answered in text, not in speech", retryable=True)
        transcript = spoken.get("transcript") or ""
        audio = b64decode(spoken["data"], validate=True)
        _check_reason(vendor, choice.get("finish_reason"))
        if text is not None:
            _check_whole(vendor, text, transcript)
        return audio, _usage(answer)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise Garbled(vendor, "answered in an unknown form") from None


def _check_reason(vendor: str, reason: Any) -> None:
    if reason == "length":
        raise Garbled(vendor, "ran out of tokens in the middle of its speech")
    if reason == "content_filter":
        raise Refused(vendor, "filtered its speech")


def _check_beginning(vendor: str, text: str, transcript: str) -> None:
    """Numbers are written in figures here and in words there: where one stands, nothing can be said against it."""
    heard = _letters(transcript)[:_ENOUGH_LETTERS]
    wanted = _letters(text)[: len(heard)]
    if any(letter.isdigit() for letter in wanted + heard):
        return
    if heard and SequenceMatcher(None, wanted, heard, autojunk=False).ratio() < _ALIKE:
        raise Garbled(vendor, "said something else than what it was to read", retryable=True)


def _check_whole(vendor: str, text: str, transcript: str) -> None:
    """One that gives no transcript is trusted."""
    if not transcript:
        return
    _check_beginning(vendor, text, transcript)
    if len(_letters(transcript)) < _LEAST_SHARE * len(_letters(text)):
        raise Garbled(vendor, "read a part of the text alone", retryable=True)


def _letters(text: str) -> str:
    """What of it is heard."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _usage(answer: dict[str, Any]) -> Usage | None:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    taken, given = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(taken, given) if is_count(taken) and is_count(given) else None
