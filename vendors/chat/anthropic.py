"""The streaming Messages API of Anthropic, which other hosts offer too."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.calls.meter import is_count
from vendors.chat.reply import broken_off, last_event, open_reply, outcome_of
from vendors.chat.thoughts import Thoughts
from vendors.chat.turns import instructions, turns, unfinished
from vendors.errors import Garbled, Refused, TooLong, VendorError
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.refusals import RETRYABLE_STATUS
from vendors.http.sse import SseParser
from vendors.http.transport import VendorHttp
from vendors.json_events import JsonEvents, answer_of, error_of, number_of, object_of
from vendors.protocols import THINKING, ChatMessage, Finish, Thinking, Usage
from vendors.too_long import says_too_long

_DOMAIN = "anthropic.com"
_WITHOUT_SAMPLING = "2026-10-21"
_MAX_TOKENS = 4096
"""The default, because the API requires this field."""
_TEXT_DELTAS = ("text_delta", "text", None)
"""It is no set, because a type may be a list."""
_TRANSIENT = frozenset({"rate_limit_error", "api_error", "timeout_error", "overloaded_error"})
"""The types of transient errors: the same call may succeed later."""
_PREFILL_MODELS = re.compile(r"claude-(?:instant|[23]|[a-z]+-4(?:-[0-5])?(?!\d|-\d{1,2}(?!\d)))")
"""Anthropic's own models that continue an unfinished assistant message: those up to 4.5."""


class Options(Model):
    """The vendor-specific settings of a strategy."""

    version: Literal["2023-06-01", "2026-10-21"] = "2023-06-01"
    """The protocol version. The newer one has no `temperature`, and other hosts may not support it."""
    prefill: bool | None = None
    """Whether the model continues an unfinished assistant message. By default derived from its name."""
    hide_thoughts: bool | None = None
    """Whether thoughts between tags are left out of the text, as with OpenAI's protocol. By default only with other
    hosts than Anthropic's, which sends them in fields of their own."""
    begins_with_thought: bool = False
    """Whether replies begin with a thought without an opening tag, as with OpenAI's protocol."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Additional request fields, such as `top_p` or `thinking`."""


def _check(options: Options, spec: ChatSpec) -> None:
    """Raise `InvalidParameter` for an option that does not fit the other settings."""
    if spec.temperature is not None and options.version == _WITHOUT_SAMPLING:
        raise InvalidParameter(f"version {options.version} does not support temperature")


class AnthropicChat:
    """One model of one account. A final assistant message is sent as the start of the reply (prefill)."""

    Options = Options
    check = staticmethod(_check)
    takes_prefill = True

    def __init__(self, http: VendorHttp, account: Account, spec: ChatSpec) -> None:
        options = Options.of(spec.options)
        self.check(options, spec)
        self.takes_prefill = _takes_prefill(spec.model) if options.prefill is None else options.prefill
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s
        fields: dict[str, Any] = {
            "model": spec.model,
            "max_tokens": spec.max_tokens or _MAX_TOKENS,
            "stream": True,
        }
        if spec.temperature is not None:
            fields["temperature"] = min(spec.temperature, 1.0)
        self._fields = {**fields, **options.extra}
        key = account.api_key.get_secret_value() if account.api_key else ""
        self._headers = {
            **({"x-api-key": key} if key else {}),
            "anthropic-version": options.version,
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        self._url = account.url("/v1/messages")
        hides = not account.is_at(_DOMAIN) if options.hide_thoughts is None else options.hide_thoughts
        self._hides_thoughts, self._begins_inside = hides, options.begins_with_thought

    def reply(self, messages: Sequence[ChatMessage]) -> open_reply:
        """Stream the reply. It must end with `message_stop` or a stop reason; any other end is an error."""
        fields, space = _message_fields(messages)
        call = Outgoing(
            self._account.platform,
            self._url,
            headers=self._headers,
            body=dumps({**self._fields, **fields}),
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )
        thoughts = None
        if self._hides_thoughts:
            thoughts = Thoughts(begins_inside=self._begins_inside, continues=unfinished(messages))
        return open_reply(self._http.stream(call), AnthropicReply(call.vendor, space_before=space), thoughts)


def _takes_prefill(model: str) -> bool:
    return "claude" not in model or _PREFILL_MODELS.search(model) is not None


def _message_fields(messages: Sequence[ChatMessage]) -> tuple[dict[str, Any], str]:
    """Return the request fields with the messages, and the whitespace at the end of a final assistant message.

    The vendor rejects that whitespace. It is removed here, and also from the start of the reply if repeated there.
    """
    history = [{"role": turn.role, "content": turn.content} for turn in turns(messages)]
    space = ""
    if history and history[-1]["role"] == "assistant":
        text = history[-1]["content"]
        history[-1]["content"] = text.rstrip()
        space = text[len(history[-1]["content"]) :]
    system = instructions(messages)
    return {**({"system": system} if system else {}), "messages": history}, space


class AnthropicReply:
    """Parses a reply incrementally. Does no I/O."""

    def __init__(self, vendor: str, *, space_before: str = "") -> None:
        self._vendor = vendor
        self._parser = SseParser(splits_lines=True)
        self._events = JsonEvents()
        self._space = space_before
        self._counts: dict[str, int] = {}
        self.finish: Finish | None = None
        self._resumed = False
        """Whether text followed the last stop reason."""
        self.done = False
        self.fault: VendorError | None = None
        self.notice: Thinking | None = None

    @property
    def is_whole(self) -> bool:
        return self.finish is not None and not self._resumed

    def feed(self, piece: bytes) -> str:
        """Return the text in `piece`, up to the first error."""
        text = ""
        try:
            for payload in self._parser.payloads(piece):
                part = self._read(self._events.decode(payload))
                self._resumed = self._resumed or (self.finish is not None and bool(part.strip()))
                text += part
                if self.done:
                    break
        except VendorError as error:
            self.fault = error
        except ValueError:
            self.fault = Garbled(self._vendor, "sent an event that is not JSON")
        text = self._events.joined(text, is_last=False)
        return self._without_space(text) if self._space else text

    def end(self) -> str:
        return last_event(self) + self._events.joined("", is_last=True)

    @property
    def usage(self) -> Usage | None:
        """The usage with cached input tokens included. The vendor reports cumulative counts."""
        input_token, output_token = self._counts.get("input_tokens"), self._counts.get("output_tokens")
        if input_token is None or output_token is None or self.finish is None:
            return None
        cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
        return Usage(input_token + sum(self._counts.get(name, 0) for name in cached), output_token)

    def _read(self, event: Mapping[str, Any]) -> str:
        match event.get("type"):
            case "content_block_delta":
                delta = object_of(event.get("delta"))
                if delta.get("type") in _TEXT_DELTAS:
                    return answer_of(delta.get("text"))
                if delta.get("thinking"):
                    self.notice = THINKING
            case "content_block_start":
                block = object_of(event.get("content_block"))
                return answer_of(block.get("text")) if block.get("type") == "text" else ""
            case "message_start":
                self._count(object_of(event.get("message")).get("usage"))
            case "message_delta":
                self._count(event.get("usage"))
                self._end(object_of(event.get("delta")).get("stop_reason"))
            case "message_stop":
                self.done = True
            case "error":
                raise _stream_error(self._vendor, error_of(event) or event.get("error"))
            case _ if (error := error_of(event)) is not None:
                raise _stream_error(self._vendor, error)
        return ""

    def _end(self, reason: Any) -> None:
        outcome = outcome_of(reason)
        if outcome == "broken":
            raise broken_off(self._vendor, reason)
        if outcome is not None:
            self.finish, self._resumed = Finish(outcome), False

    def _count(self, usage: Any) -> None:
        for name, count in object_of(usage).items():
            if is_count(count):
                self._counts[name] = count

    def _without_space(self, text: str) -> str:
        """Remove the whitespace that already ends the unfinished assistant message."""
        while self._space and text:
            if text[0] != self._space[0]:
                self._space = ""
            else:
                text, self._space = text[1:], self._space[1:]
        return text


def _stream_error(vendor: str, error: Any) -> Refused:
    fields = object_of(error)
    code, status = str(fields.get("type")), number_of(fields.get("code"))
    said = fields.get("message") or status or fields.get("type") or error
    message = " ".join(str(said).split())[:200]
    return (TooLong if says_too_long(message, code) else Refused)(
        vendor,
        f"broke off with an error: {message}",
        retryable=code in _TRANSIENT or status in RETRYABLE_STATUS,
        extra={"code": code[:64]},
    )
