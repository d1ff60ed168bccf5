"""Chat completions of OpenAI's protocol: OpenAI, vLLM, Ollama, llama.cpp, the engines of this machine."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.chat.reply import replying
from vendors.errors import Garbled, VendorError, broke_off
from vendors.meter import is_count
from vendors.protocols import ChatMessage, Finish, Usage
from vendors.sse import SseParser
from vendors.transport import Outgoing, VendorHttp

_REASONS: dict[str, Literal["stop", "length", "content_filter"]] = {
    "length": "length",
    "content_filter": "content_filter",
}


class Options(Model):
    """What of a strategy goes to the vendor as it stands."""

    token_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"  # noqa: S105 - a field's name
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, such as `top_p` or `reasoning_effort`."""


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
        # all of the request but its messages is made once, when the strategy is
        self._request_head = dumps({**fields, **options.extra})[:-1] + b',"messages":'
        self._headers = {
            **account.bearer(),
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        self._url = account.url("/chat/completions")

    def reply(self, messages: Sequence[ChatMessage]) -> replying:
        """Stream the reply. Ends well only by `[DONE]` or a finish reason; anything else is an error."""
        asked = [{"role": message.role, "content": message.content} for message in messages]
        body = self._request_head + dumps(asked) + b"}"
        call = Outgoing(
            self._account.platform, self._url, headers=self._headers, body=body, connect_s=self._connect_s
        )
        return replying(self._http.stream(call), _Reply(call.vendor))


class _Reply:
    """What is known of a reply beside its text."""

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

    def take(self, piece: bytes) -> str:
        """The text of `piece`, up to a fault where it holds one."""
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
            self.fault = Garbled(self._vendor, "sent an event that is no JSON")
        except (AttributeError, TypeError):
            self.fault = Garbled(self._vendor, "sent an event of an unknown form")
        return text

    def _read(self, chunk: Any) -> str:
        """The text of a chunk; it may hold no choice at all."""
        if not isinstance(chunk, dict):
            raise Garbled(self._vendor, "sent an event that is no object")
        if error := chunk.get("error"):
            raise broke_off(self._vendor, error)
        text = ""
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue  # nobody asked for a second answer
            reason = choice.get("finish_reason")
            if reason == "error" or choice.get("error"):
                raise broke_off(self._vendor, choice.get("error") or "error")
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
