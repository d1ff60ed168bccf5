"""The `streamGenerateContent` method of the Gemini API and of Vertex AI over Server-Sent Events."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.calls.meter import is_count
from vendors.chat.reply import last_event, open_reply
from vendors.chat.thoughts import Thoughts
from vendors.chat.turns import instructions, turns, unfinished
from vendors.errors import Garbled, Refused, VendorError
from vendors.google import GoogleHttp, error_in_response
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sse import LIMIT_BYTES
from vendors.http.transport import VendorHttp
from vendors.json_events import JsonEvents, is_error, object_of, objects_of, text_of
from vendors.protocols import THINKING, ChatMessage, Finish, FinishReason, Thinking, Usage

_DOMAIN = "googleapis.com"
_FILTERED: FinishReason = "content_filter"
_REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": _FILTERED,
    "RECITATION": _FILTERED,
    "LANGUAGE": _FILTERED,
    "BLOCKLIST": _FILTERED,
    "PROHIBITED_CONTENT": _FILTERED,
    "SPII": _FILTERED,
    "IMAGE_SAFETY": _FILTERED,
}
"""Any other finish reason means that the reply failed."""
_NO_REASON = "FINISH_REASON_UNSPECIFIED"
_MAX_BARE_BYTES = 16 * 1024
_FIELDS = (b":", b"event:", b"id:", b"retry:")


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
                chunk = self._events.decode(payload)
                part = self._text(chunk)
                text += part
                self.usage = _usage(chunk) or self.usage
                self._end(chunk, has_text=bool(part))
        except VendorError as error:
            self.fault = error
        except ValueError:
            self.fault = Garbled(self._vendor, "sent an event that is not JSON")
        return self._events.joined(text, is_last=False)

    def end(self) -> str:
        return last_event(self) + self._events.joined("", is_last=True)

    def _text(self, chunk: Mapping[str, Any]) -> str:
        """Return the text of a chunk without the model's thoughts."""
        if (error := chunk.get("error")) and is_error(error):
            raise error_in_response(self._vendor, error)
        text = ""
        for candidate in objects_of(chunk.get("candidates")):
            for part in objects_of(object_of(candidate.get("content")).get("parts")):
                if not part.get("thought"):
                    text += text_of(part.get("text"))
                elif part.get("text"):
                    self.notice = THINKING
        if text and self.finish is not None:
            self._resumed = True
        return text

    def _end(self, chunk: Mapping[str, Any], *, has_text: bool) -> None:
        candidates = objects_of(chunk.get("candidates"))
        reasons = [value for candidate in candidates if (value := candidate.get("finishReason"))]
        reason = str(reasons[0]).upper() if reasons else _NO_REASON
        if reason in _REASONS:
            self.finish = Finish(_REASONS[reason])
            self._resumed = self._resumed and has_text
        elif reason != _NO_REASON:
            raise Refused(self._vendor, f"broke off its answer: {reason[:64]}", retryable=True)
        elif not candidates and object_of(chunk.get("promptFeedback")).get("blockReason"):
            self.finish = Finish(_FILTERED)


class _Payloads:
    """Splits the stream into payloads: the data of events, and bare JSON over several lines, as used for errors."""

    def __init__(self) -> None:
        self._tail = b""
        self._data: list[bytes] = []
        self._bare = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the payloads that `piece` completes. Raise `ValueError` if one is larger than the limit."""
        *lines, self._tail = (self._tail + piece).split(b"\n")
        payloads = [payload for line in lines if (payload := self._line(line.removesuffix(b"\r")))]
        if len(self._tail) + sum(map(len, self._data)) > LIMIT_BYTES:
            raise ValueError("an event is too large")
        return payloads

    def _line(self, line: bytes) -> bytes:
        if not line:
            payload, self._data = b"\n".join(self._data), []
            return payload
        if self._bare or not line.startswith((b"data:", *_FIELDS)):
            return self._bare_line(line)
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        return b""

    def _bare_line(self, line: bytes) -> bytes:
        self._bare += line + b"\n"
        if len(self._bare) > _MAX_BARE_BYTES:
            raise ValueError("an error is too large")
        if not line.endswith((b"}", b"]")):
            return b""
        try:
            loads(self._bare)
        except ValueError:
            return b""
        payload, self._bare = self._bare, b""
        return payload


def _usage(chunk: Mapping[str, Any]) -> Usage | None:
    """Return the usage. Thoughts are billed as output. The vendor omits counts of zero."""
    usage = object_of(chunk.get("usageMetadata"))
    input_tokens = usage.get("promptTokenCount")
    output_tokens = [usage.get(name) or 0 for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    if not is_count(input_tokens) or not all(map(is_count, output_tokens)):
        return None
    return Usage(input_tokens, sum(output_tokens))
