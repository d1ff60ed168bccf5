"""Parses the speech of a chat model that reads a text, and checks the transcript. Does no I/O."""

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from vendors.calls.meter import is_count
from vendors.chat.reply import broken_off, outcome_of
from vendors.errors import Garbled, Refused, VendorError, error_in_stream
from vendors.http.sse import SseParser
from vendors.json_events import (
    JsonEvents,
    bytes_of,
    error_of,
    is_end_mark,
    is_error,
    object_of,
    objects_of,
    text_of,
)
from vendors.protocols import Usage
from vendors.speech.samples import Samples

SAMPLE_RATE = 24_000
_MAX_HELD_BYTES = 2 * SAMPLE_RATE
"""At most one second of audio is held back until the transcript shows what is spoken."""
_COMPARED_LETTERS = 20
_MIN_SIMILARITY = 0.75
_MIN_SHARE = 0.5


class SpeechResponseParser:
    """Parses a streamed response. `text` is the text to be read, or `None` to accept any speech.

    Audio is held back until the transcript, which arrives ahead of it, shows that the model reads the text.
    """

    def __init__(self, vendor: str, text: str | None) -> None:
        self.done = False
        """Whether the end mark has arrived."""
        self.ended = False
        """Whether the speech is complete, which may be reported only by the expiry time of its audio."""
        self.usage: Usage | None = None
        self.fault: VendorError | None = None
        self._vendor = vendor
        self._text = text
        self._transcript = ""
        self._held_audio: bytes | None = None if text is None else b""
        self._parser = SseParser(splits_lines=True)
        self._events = JsonEvents()
        self._samples = Samples()

    def feed(self, piece: bytes) -> bytes:
        """Return the audio that can be played after `piece`, up to the first error."""
        audio = b""
        try:
            for payload in self._parser.payloads(piece):
                if is_end_mark(payload):
                    self.done = self.ended = True
                    break
                audio += self._released(self._samples.feed(self._read(self._events.decode(payload))))
        except VendorError as fault:
            self.fault = fault
        except ValueError:
            self.fault = Garbled(self._vendor, "sent a malformed event")
        return audio

    def end(self) -> bytes:
        """Return the audio that is still held back. Raise the error of an invalid or incomplete response."""
        if self.fault is not None and not self.ended:
            raise self._take_fault()
        if not self.ended:
            raise Garbled(self._vendor, "ended its speech without a final event", retryable=True)
        if self._text is not None:
            _check_transcript(self._vendor, self._text, self._transcript)
        return self._held_audio or b""

    def _take_fault(self) -> VendorError:
        """Return the error. It is not kept, because its traceback will refer to this object."""
        fault, self.fault = self.fault, None
        assert fault is not None, "called after a fault"
        return fault

    def _read(self, chunk: Mapping[str, Any]) -> bytes:
        """Return the audio of a chunk, which may have no choices."""
        error = chunk.get("error") if chunk.get("choices") else error_of(chunk)
        if error and is_error(error):
            raise error_in_stream(self._vendor, error)
        self.usage = _usage(chunk) or self.usage
        audio = b""
        for choice in objects_of(chunk.get("choices")):
            spoken = object_of(object_of(choice.get("delta")).get("audio"))
            self._transcript += self._events.joined(text_of(spoken.get("transcript")), is_last=False)
            audio += bytes_of(spoken.get("data"))
            is_last = _is_last(self._vendor, choice.get("finish_reason"))
            self.ended = self.ended or is_last or bool(spoken.get("expires_at"))
        return audio

    def _released(self, audio: bytes) -> bytes:
        if self._held_audio is None or self._text is None:
            return audio
        self._held_audio += audio
        needed = min(_COMPARED_LETTERS, len(_letters(self._text)))
        if len(_letters(self._transcript)) >= needed:
            _check_beginning(self._vendor, self._text, self._transcript)
        elif len(self._held_audio) < _MAX_HELD_BYTES:
            return b""
        audio, self._held_audio = self._held_audio, None
        return audio


def parse_complete(vendor: str, response: Any, text: str | None) -> tuple[bytes, Usage | None]:
    """Return audio and usage of a response that was not streamed. Raise its error if it is invalid."""
    fields = object_of(response)
    error = fields.get("error") if fields.get("choices") else error_of(fields)
    if error and is_error(error):
        raise error_in_stream(vendor, error)
    choice = next(iter(objects_of(fields.get("choices"))), {})
    message = object_of(choice.get("message"))
    if message and message.get("audio") is None:
        raise Garbled(vendor, "answered with text instead of speech", retryable=True)
    _is_last(vendor, choice.get("finish_reason"))
    spoken = object_of(message.get("audio"))
    try:
        audio = bytes_of(spoken.get("data"))
    except ValueError:
        audio = b""
    if not audio:
        raise Garbled(vendor, "sent a malformed response")
    if text is not None:
        _check_transcript(vendor, text, text_of(spoken.get("transcript")))
    return audio, _usage(response)


def _is_last(vendor: str, reason: Any) -> bool:
    """Return whether there is a finish reason. Raise an error if the speech is incomplete because of it."""
    match outcome_of(reason):
        case "length":
            raise Garbled(vendor, "ran out of tokens in the middle of its speech")
        case "content_filter":
            raise Refused(vendor, "filtered its speech")
        case "broken":
            raise broken_off(vendor, reason)
        case outcome:
            return outcome is not None


def _check_beginning(vendor: str, text: str, transcript: str) -> None:
    """Compare the beginning of the transcript with the text. A beginning with digits is not compared.

    Numbers may be digits in one and words in the other.
    """
    spoken = _letters(transcript)[:_COMPARED_LETTERS]
    expected = _letters(text)[: len(spoken)]
    if any(letter.isdigit() for letter in expected + spoken):
        return
    if spoken and SequenceMatcher(None, expected, spoken, autojunk=False).ratio() < _MIN_SIMILARITY:
        raise Garbled(vendor, "spoke a different text", retryable=True)


def _check_transcript(vendor: str, text: str, transcript: str) -> None:
    """Compare the complete transcript with the text. Speech without a transcript is accepted."""
    if not transcript:
        return
    _check_beginning(vendor, text, transcript)
    if len(_letters(transcript)) < _MIN_SHARE * len(_letters(text)):
        raise Garbled(vendor, "spoke only a part of the text", retryable=True)


def _letters(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _usage(response: Mapping[str, Any]) -> Usage | None:
    usage = response.get("usage")
    if not isinstance(usage, dict):
        return None
    input_token, output_token = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(input_token, output_token) if is_count(input_token) and is_count(output_token) else None
