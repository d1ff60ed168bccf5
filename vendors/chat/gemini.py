"""Gemini's `streamGenerateContent` over Server-Sent Events: of the Gemini API, and of Vertex AI."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.chat.reply import replying
from vendors.chat.turns import instructions, turns
from vendors.errors import Garbled, Refused, VendorError
from vendors.google import GoogleHttp, error_inside
from vendors.protocols import ChatMessage, Finish, FinishReason, Usage
from vendors.sse import LIMIT_BYTES
from vendors.transport import Outgoing, VendorHttp

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
"""With any other reason the vendor says that the answer failed."""
_BARE_BYTES = 16 * 1024
_FIELDS = (b":", b"event:", b"id:", b"retry:")


class Options(Model):
    """What of a strategy goes to the vendor as it stands, and what its model can do."""

    prefill: bool = False
    """Whether the model goes on from an unfinished answer: some of before 3.5 do."""
    generation: dict[str, Any] = Field(default_factory=dict)
    """Further fields of `generationConfig`, such as `topP` or `thinkingConfig`."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, such as `safetySettings`."""


class GeminiChat:
    """One model of one account. Its key is an API key, or for Vertex AI a service account's JSON."""

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

    def reply(self, messages: Sequence[ChatMessage]) -> replying:
        """Stream the reply. Ends well only by a finish reason; anything else is an error."""
        call = Outgoing(
            self._account.platform,
            self._url,
            headers={"Content-Type": "application/json", "Accept": "text/event-stream"},
            body=dumps({**self._fields, **_asked(messages)}),
            connect_s=self._connect_s,
        )
        return replying(self._http.stream(call), GeminiReply(call.vendor))


def _asked(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    contents = [
        {"role": "model" if turn.role == "assistant" else "user", "parts": [{"text": turn.content}]}
        for turn in turns(messages)
    ]
    system = instructions(messages)
    return {**({"systemInstruction": {"parts": [{"text": system}]}} if system else {}), "contents": contents}


class GeminiReply:
    """A reply as it is read. Pure."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._payloads = _Payloads()
        self.usage: Usage | None = None
        self.finish: Finish | None = None
        self.fault: VendorError | None = None

    @property
    def done(self) -> bool:
        """The vendor has no end mark: behind these two nothing comes."""
        return self.finish is not None and self.usage is not None

    def take(self, piece: bytes) -> str:
        """The text of `piece`, up to a fault where it holds one."""
        text = ""
        try:
            for payload in self._payloads.feed(piece):
                chunk = loads(payload)
                text += self._text(chunk)
                self.usage = _usage(chunk) or self.usage
                self._end(chunk)
                if self.done:
                    break
        except VendorError as error:
            self.fault = error
        except ValueError:
            self.fault = Garbled(self._vendor, "sent an event that is no JSON")
        except (AttributeError, TypeError, KeyError, IndexError):
            self.fault = Garbled(self._vendor, "sent an event of an unknown form")
        return text

    def _text(self, chunk: Any) -> str:
        """What the model says, without what it thinks."""
        if isinstance(chunk, list):
            chunk = chunk[0]
        if error := chunk.get("error"):
            raise error_inside(self._vendor, error)
        text = ""
        for candidate in chunk.get("candidates") or ():
            for part in (candidate.get("content") or {}).get("parts") or ():
                if not part.get("thought"):
                    text += part.get("text") or ""
        return text

    def _end(self, chunk: Mapping[str, Any]) -> None:
        candidates = chunk.get("candidates") or ()
        reason = next((found for candidate in candidates if (found := candidate.get("finishReason"))), None)
        if reason in _REASONS:
            self.finish = Finish(_REASONS[reason])
        elif reason is not None:
            raise Refused(self._vendor, f"broke off its answer: {str(reason)[:64]}", retryable=True)
        elif not candidates and (chunk.get("promptFeedback") or {}).get("blockReason"):
            self.finish = Finish(_FILTERED)


class _Payloads:
    """What stands in `data:` lines; and JSON that stands bare over several lines, as errors in a stream do."""

    def __init__(self) -> None:
        self._tail = b""
        self._data: list[bytes] = []
        self._bare = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Payloads that `piece` completes. `ValueError` when one is larger than the limit."""
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
        if len(self._bare) > _BARE_BYTES:
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
    """The thoughts of the model are billed as output; counts of nothing are left out by the vendor."""
    usage = chunk.get("usageMetadata")
    if not isinstance(usage, dict) or not isinstance(asked := usage.get("promptTokenCount"), int):
        return None
    said = [usage.get(name) or 0 for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    return Usage(asked, sum(said))
