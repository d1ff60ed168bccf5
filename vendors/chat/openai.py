"""Chat completions of OpenAI's API, as offered by OpenAI, vLLM, Ollama, llama.cpp and the local engines."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from streams.wire.codec import dumps, loads
from streams.wire.model import Model
from vendors.account import Account, ChatSpec
from vendors.calls.meter import is_count
from vendors.chat.reply import broken_off, last_event, open_reply, outcome_of
from vendors.chat.second_try import USAGE_OPTIONS, Opened, with_usage
from vendors.chat.thoughts import Thoughts
from vendors.chat.turns import instructions, turns
from vendors.errors import Garbled, VendorError, error_in_stream
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sse import SseParser
from vendors.http.transport import VendorHttp
from vendors.json_events import (
    JsonEvents,
    answer_of,
    error_of,
    first_object,
    is_end_mark,
    is_error,
    object_of,
    text_of,
)
from vendors.protocols import THINKING, ChatItem, ChatMessage, Finish, Thinking, Usage

_FIRST = (0, None, "0")
"""The index of the only choice that was requested. It is no set, because a value may be a list."""
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
"""The fields of a delta in which servers send thoughts."""


class Options(Model):
    """The vendor-specific settings of a strategy."""

    token_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"  # noqa: S105 - a field's name
    """The request field for `max_tokens`. Older and some self-hosted servers only know `max_tokens`."""
    hide_thoughts: bool = True
    """Whether thoughts are left out of the text: what stands between `<think>` and `</think>` or similar tags that
    begin a line or a sentence or directly follow a word, outside of code and quotation marks."""
    begins_with_thought: bool = False
    """Whether replies begin with a thought without an opening tag, as with DeepSeek R1 and QwQ behind some servers.
    Text is then held back until the closing tag, or the end of a reply without one. Otherwise such a thought is
    shown first, and the answer begins again if the closing tag stands at the start of a line."""
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
        fields: dict[str, Any] = {"model": spec.model, "stream": True}
        if spec.max_tokens is not None:
            fields[options.token_field] = spec.max_tokens
        if spec.temperature is not None:
            fields["temperature"] = spec.temperature
        # Everything except the messages is encoded once for all requests.
        self._head = _head_of({**fields, **options.extra})
        self._head_with_usage = _head_of({**fields, **USAGE_OPTIONS, **options.extra})
        self._hides_thoughts = options.hide_thoughts
        self._begins_inside = options.begins_with_thought
        self._headers = {
            **account.bearer(),
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        self._url = account.url("/chat/completions")

    def reply(self, messages: Sequence[ChatMessage]) -> Opened[ChatItem]:
        """Stream the reply. It must end with `[DONE]` or a finish reason; any other end is an error."""
        system = instructions(messages)
        history = [{"role": "system", "content": system}] if system else []
        history += [{"role": turn.role, "content": turn.content} for turn in turns(messages)]
        rest = dumps(history) + b"}"
        return with_usage(
            self._account, lambda options: self._opened((self._head_with_usage if options else self._head) + rest)
        )

    def _opened(self, body: bytes) -> open_reply:
        thoughts = Thoughts(begins_inside=self._begins_inside) if self._hides_thoughts else None
        return open_reply(self._http.stream(self._call(body)), OpenAIReply(self._account.platform), thoughts)

    def _call(self, body: bytes) -> Outgoing:
        return Outgoing(
            self._account.platform,
            self._url,
            headers=self._headers,
            body=body,
            connect_s=self._connect_s,
            repeat=Repeat.SAFE,
        )


def _head_of(fields: Mapping[str, Any]) -> bytes:
    return dumps(fields)[:-1] + b',"messages":'


class OpenAIReply:
    """Parses a reply incrementally. Does no I/O."""

    __slots__ = (
        "_events",
        "_parser",
        "_resumed",
        "_said",
        "_vendor",
        "done",
        "fault",
        "finish",
        "notice",
        "usage",
    )

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._parser = SseParser(splits_lines=True)
        self._events = JsonEvents()
        self.finish: Finish | None = None
        self._resumed = False
        """Whether the last text followed a finish reason, which some servers send with each chunk."""
        self._said: list[str] = []
        """The texts of the deltas."""
        self.usage: Usage | None = None
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
                if payload[:1] != b"{" and is_end_mark(payload):
                    self.done = True
                    break
                try:
                    chunk = loads(payload)
                except ValueError:  # As with all `ErrorData`, which is no plain `bytes`.
                    chunk = self._events.decode(payload)
                text += self._read(chunk if type(chunk) is dict else first_object(chunk))
                if self.fault is not None:
                    break
        except ValueError:
            self.fault = Garbled(self._vendor, "sent an event that is not JSON")
        if self._events.is_repaired:
            text = self._events.joined(text, is_last=False)
        return text

    def end(self) -> str:
        return last_event(self) + self._events.joined("", is_last=True)

    def _read(self, chunk: Mapping[str, Any]) -> str:
        """Return the text of a chunk, which may have no choices. An error in it is the `fault`."""
        text = ""
        choices = chunk.get("choices")
        for choice in choices if type(choices) is list else ():
            if type(choice) is not dict or choice.get("index") not in _FIRST:
                continue  # Only one choice was requested.
            if type(delta := choice.get("delta")) is dict:
                content = delta.get("content")
                if said := content if content and type(content) is str else self._odd_text(delta):
                    self._said.append(said)
                    text += said
            if message := choice.get("message"):
                text += self._unsaid(self._odd_text(object_of(message)))
            if self.finish is not None and text.strip():
                self._resumed = True
            if choice.get("finish_reason") or choice.get("error"):
                self._end(choice, has_text=bool(text))
        if (usage := chunk.get("usage")) is not None:
            self.usage = _usage(usage) or self.usage
        error = chunk.get("error") if choices else error_of(chunk)
        if error and is_error(error):
            self.fault = error_in_stream(self._vendor, error)
        return text

    def _end(self, choice: Mapping[str, Any], *, has_text: bool) -> None:
        if (error := choice.get("error")) and is_error(error):
            self.fault = error_in_stream(self._vendor, error)
            return
        reason = choice.get("finish_reason")
        outcome = outcome_of(reason)
        if outcome == "broken":
            self.fault = broken_off(self._vendor, reason)
        elif outcome is not None:
            self.finish = Finish(outcome)
            self._resumed = self._resumed and has_text

    def _unsaid(self, text: str) -> str:
        """Return what the text of a message adds to the deltas, which it repeats."""
        if not (self._said and text):
            return text
        said = "".join(self._said)
        if not text.startswith(said):
            return ""
        self._said = [text]
        return text[len(said) :]

    def _odd_text(self, delta: Mapping[str, Any]) -> str:
        """Return the text of a delta whose content is no text."""
        content = delta.get("content")
        text = answer_of(content) or text_of(delta.get("refusal"))
        if not text and (isinstance(content, list) or any(map(delta.get, _THOUGHTS))):
            self.notice = THINKING
        return text


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(sent, received) if is_count(sent) and is_count(received) else None
