"""Chat completions of OpenAI's API, as offered by OpenAI, vLLM, Ollama, llama.cpp and the local engines."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.calls.meter import is_count
from vendors.chat.reply import open_reply
from vendors.errors import Garbled, VendorError, error_in_stream
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sse import SseParser
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatMessage, Finish, Usage

_REASONS: dict[str, Literal["stop", "length", "content_filter"]] = {
    "length": "length",
    "content_filter": "content_filter",
}


class Options(Model):
    """The vendor-specific settings of a strategy."""

    token_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"  # noqa: S105 - a field's name
    """The request field for `max_tokens`. Older and some self-hosted servers only know `max_tokens`."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Additional request fields, such as `top_p` or `reasoning_effort`."""


class OpenAIChat:
    """One model of one account."""

    Options = Options
    takes_prefill = False

    def __init__(self, http: VendorHttp, account: Account, spec: ChatSpec) -> None:
        options = Options.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        fields: dict[str, Any] = {
            "model": spec.model,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if spec.max_tokens is not None:
            fields[options.token_field] = spec.max_tokens
        if spec.temperature is not None:
            fields["temperature"] = spec.temperature
        # Everything except the messages is encoded once for all requests.
        self._request_head = dumps({**fields, **options.extra})[:-1] + b',"messages":'
        self._headers = {
            **account.bearer(),
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        self._url = account.url("/chat/completions")

    def reply(self, messages: Sequence[ChatMessage]) -> open_reply:
        """Stream the reply. It must end with `[DONE]` or a finish reason; any other end is an error."""
        history = [{"role": message.role, "content": message.content} for message in messages]
        body = self._request_head + dumps(history) + b"}"
        call = Outgoing(
            self._account.platform,
            self._url,
            headers=self._headers,
            body=body,
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        return open_reply(self._http.stream(call), _Reply(call.vendor))


class _Reply:
    """Parses a reply incrementally. Does no I/O."""

    __slots__ = ("_parser", "_reason", "_vendor", "done", "fault", "usage")

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._parser = SseParser()
        self._reason: str | None = None
        self.usage: Usage | None = None
        self.done = False
        self.fault: VendorError | None = None

    @property
    def finish(self) -> Finish | None:
        return Finish(_REASONS.get(self._reason, "stop")) if self._reason is not None else None

    def feed(self, piece: bytes) -> str:
        """Return the text in `piece`, up to the first error."""
        text = ""
        try:
            for payload in self._parser.payloads(piece):
                if payload == b"[DONE]":
                    self.done = True
                    break
                text += self._read(loads(payload))
        except VendorError as error:
            self.fault = error
        except ValueError:
            self.fault = Garbled(self._vendor, "sent an event that is not JSON")
        except (AttributeError, TypeError):
            self.fault = Garbled(self._vendor, "sent a malformed event")
        return text

    def _read(self, chunk: Any) -> str:
        """Return the text of a chunk, which may have no choices."""
        if not isinstance(chunk, dict):
            raise Garbled(self._vendor, "sent an event that is not an object")
        if error := chunk.get("error"):
            raise error_in_stream(self._vendor, error)
        text = ""
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue  # Only one choice was requested.
            reason = choice.get("finish_reason")
            if reason == "error" or choice.get("error"):
                raise error_in_stream(self._vendor, choice.get("error") or "error")
            delta = choice.get("delta") or {}
            text += delta.get("content") or delta.get("refusal") or ""
            if reason:
                self._reason = str(reason)
        if (usage := chunk.get("usage")) is not None:
            self.usage = _usage(usage) or self.usage
        return text


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(sent, received) if is_count(sent) and is_count(received) else None
