"""The `streamGenerateContent` method of the Gemini API and of Vertex AI over Server-Sent Events."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.calls.meter import is_count
from vendors.chat.reply import broken_off, last_event, open_reply, outcome_of
from vendors.chat.thoughts import Thoughts
from vendors.chat.turns import instructions, turns, unfinished
from vendors.errors import Garbled, VendorError
from vendors.google import GoogleHttp, error_in_response
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sse import LIMIT_BYTES, SseLines, is_whole
from vendors.http.transport import VendorHttp
from vendors.json_events import ErrorData, JsonEvents, answer_of, error_of, is_error, object_of, objects_of
from vendors.protocols import THINKING, ChatMessage, Finish, Thinking, Usage

_DOMAIN = "googleapis.com"
_FIRST = (0, None, "0")
"""The index of the only candidate that was requested. It is no set, because a value may be a list."""
_MAX_BARE_BYTES = 16 * 1024


class Options(Model):
    """The vendor-specific settings of a strategy."""

    prefill: bool = False
    """Whether the model continues an unfinished assistant message, as some models before 3.5 do."""
    hide_thoughts: bool | None = None
    """Whether thoughts between tags are left out of the text, as with OpenAI's protocol. By default only with other
    hosts than Google's, which sends them in fields of their own."""
    begins_with_thought: bool = False
    """Whether replies begin with a thought without an opening tag, as with OpenAI's protocol."""
    generation: dict[str, Any] = Field(default_factory=dict)
    """Additional fields of `generationConfig`, such as `topP` or `thinkingConfig`."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Additional request fields, such as `safetySettings`."""


class GeminiChat:
    """One model of one account. The key is an API key, or for Vertex AI the JSON of a service account."""

    Options = Options
    takes_prefill = False

    def __init__(self, http: VendorHttp, account: Account, spec: ChatSpec) -> None:
        options = Options.of(spec.options)
        self.takes_prefill = options.prefill
        self._http = GoogleHttp(http, account)
        self._account = account
        self._connect_s = spec.connect_s
        generation: dict[str, Any] = {}
        if spec.max_tokens is not None:
            generation["maxOutputTokens"] = spec.max_tokens
        if spec.temperature is not None:
            generation["temperature"] = spec.temperature
        generation |= options.generation
        self._fields = {**({"generationConfig": generation} if generation else {}), **options.extra}
        model = spec.model if "/" in spec.model else f"models/{spec.model}"
        self._url = account.url(f"/{quote(model)}:streamGenerateContent?alt=sse")
        hides = not account.is_at(_DOMAIN) if options.hide_thoughts is None else options.hide_thoughts
        self._hides_thoughts, self._begins_inside = hides, options.begins_with_thought

    def reply(self, messages: Sequence[ChatMessage]) -> open_reply:
        """Stream the reply. It must end with a finish reason; any other end is an error."""
        call = Outgoing(
            self._account.platform,
            self._url,
            headers={"Content-Type": "application/json", "Accept": "text/event-stream"},
            body=dumps({**self._fields, **_message_fields(messages)}),
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        thoughts = None
        if self._hides_thoughts:
            thoughts = Thoughts(begins_inside=self._begins_inside, continues=unfinished(messages))
        return open_reply(self._http.stream(call), GeminiReply(call.vendor), thoughts)


def _message_fields(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    contents = [
        {"role": "model" if turn.role == "assistant" else "user", "parts": [{"text": turn.content}]}
        for turn in turns(messages)
    ]
    system = instructions(messages)
    return {**({"systemInstruction": {"parts": [{"text": system}]}} if system else {}), "contents": contents}


class GeminiReply:
    """Parses a reply incrementally. Does no I/O."""

    done = False
    """The protocol has no end mark: only the end of the stream ends a reply."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._payloads = _Payloads()
        self._events = JsonEvents()
        self._resumed = False
        """Whether the last text followed a finish reason, which some models send with each chunk."""
        self.usage: Usage | None = None
        self.finish: Finish | None = None
        self.fault: VendorError | None = None
        self.notice: Thinking | None = None

    @property
    def is_whole(self) -> bool:
        return self.finish is not None and not self._resumed

    def feed(self, piece: bytes) -> str:
        """Return the text in `piece`, up to the first error."""
        text = ""
        try:
            for payload in self._payloads.feed(piece):
                text += self._read(self._events.decode(payload))
                if self.fault is not None:
                    break
        except ValueError:
            self.fault = Garbled(self._vendor, "sent an event that is not JSON")
        return self._events.joined(text, is_last=False)

    def end(self) -> str:
        return last_event(self) + self._events.joined("", is_last=True)

    def _read(self, chunk: Mapping[str, Any]) -> str:
        """Return the text of a chunk without the model's thoughts. An error in it is the `fault`."""
        text, reason = "", None
        candidates = objects_of(chunk.get("candidates"))
        for candidate in candidates:
            if candidate.get("index") in _FIRST:
                text += self._text(candidate)
                reason = reason or candidate.get("finishReason")
        if text.strip() and self.finish is not None:
            self._resumed = True
        self.usage = _usage(chunk) or self.usage
        error = chunk.get("error") if candidates else error_of(chunk)
        if error and is_error(error):
            self.fault = error_in_response(self._vendor, error)
        elif not candidates and object_of(chunk.get("promptFeedback")).get("blockReason"):
            self.finish = Finish("content_filter")
        else:
            self._end(reason, has_text=bool(text))
        return text

    def _text(self, candidate: Mapping[str, Any]) -> str:
        text = ""
        for part in objects_of(object_of(candidate.get("content")).get("parts")):
            if not part.get("thought"):
                text += answer_of(part.get("text"))
            elif part.get("text"):
                self.notice = THINKING
        return text

    def _end(self, reason: Any, *, has_text: bool) -> None:
        outcome = outcome_of(reason, unknown="broken")
        if outcome == "broken":
            self.fault = broken_off(self._vendor, reason)
        elif outcome is not None:
            self.finish = Finish(outcome)
            self._resumed = self._resumed and has_text


class _Payloads:
    """Splits the stream into payloads: the data of events, and bare JSON over several lines, as used for errors.

    Other lines between events, such as `ping` or a proxy's HTML, are skipped.
    """

    def __init__(self) -> None:
        self._lines = SseLines()
        self._data: list[bytes] = []
        self._type: type[bytes] = bytes
        """`ErrorData` in an event that is named `error`."""
        self._bare = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the payloads that `piece` completes. Raise `ValueError` if one is larger than the limit."""
        payloads = [payload for line in self._lines.feed(piece) if (payload := self._line(line))]
        if len(self._lines.tail) + sum(map(len, self._data)) > LIMIT_BYTES:
            raise ValueError("an event is too large")
        return payloads

    def _line(self, line: bytes) -> bytes:
        if not line:
            payload, self._data = self._type(b"\n".join(self._data)), []
            self._type = bytes
            return payload
        if line.startswith(b"data:"):
            payload = b""
            if len(self._data) == 1 and is_whole(self._data[0]):  # One line feed separates two events.
                payload = self._data.pop()
            self._data.append(line[5:].removeprefix(b" "))
            self._bare = b""  # What began like JSON was none.
            return payload
        if line.startswith(b"event:"):
            self._type = ErrorData if line[6:].strip() == b"error" else bytes
        return self._bare_line(line) if self._bare or line.lstrip().startswith((b"{", b"[")) else b""

    def _bare_line(self, line: bytes) -> bytes:
        bare = self._bare + line + b"\n"
        self._bare = bare if len(bare) <= _MAX_BARE_BYTES else b""
        if line.rstrip().endswith((b"}", b"]")):
            with suppress(ValueError):
                loads(bare)
                self._bare = b""
                return bare
        return b""


def _usage(chunk: Mapping[str, Any]) -> Usage | None:
    """Return the usage. Thoughts are billed as output. The vendor omits counts of zero."""
    usage = object_of(chunk.get("usageMetadata"))
    input_tokens = usage.get("promptTokenCount")
    output_tokens = [usage.get(name) or 0 for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    if not is_count(input_tokens) or not all(map(is_count, output_tokens)):
        return None
    return Usage(input_tokens, sum(output_tokens))
