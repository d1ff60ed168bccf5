"""Reads streamed replies of every chat protocol and distinguishes complete replies from broken ones."""

import re
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Literal, Protocol

from streams.push import PushSource, Sink
from vendors.chat.thoughts import Thoughts
from vendors.errors import Empty, Garbled, Refused, VendorError
from vendors.http.sse import END_OF_EVENT, is_event_stream
from vendors.http.transport import Incoming
from vendors.protocols import THINKING, WITHDRAWAL, ChatItem, Finish, FinishReason, TextDelta, Thinking, Usage

Outcome = FinishReason | Literal["broken"]
"""`broken`: the answer was broken off by a failure, so it is not complete."""
_WORDS: dict[Outcome, str] = {
    "stop": "stop stopped complete completed normal end_turn eos eos_token stop_sequence",
    # The limit of the request, or that of the model's context.
    "length": "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length model_length"
    " token_limit error_limit model_context_window_exceeded context_length_exceeded",
    "content_filter": "content_filter content_filtered sensitive safety refusal recitation language blocklist"
    " prohibited_content spii image_safety model_armor guardrail_intervened moderation error_toxic",
    "broken": "time_limit stalled model_unloaded",
}
_OUTCOMES = {word: outcome for outcome, words in _WORDS.items() for word in words.split()}
"""Why a model stopped, in the words of all vendors: gateways pass on those of the vendors behind them."""
_NO_REASON = frozenset({"", "null", "none", "finish_reason_unspecified", "unspecified", "not_finished"})
_BROKEN = re.compile(
    r"error|fail|abort|cancel|time_?d?_?out|interrupt|insufficient|overload|unavailable|exception|disconnect"
    r"|malformed|unexpected|missing|too_many"
)
"""Zhipu: `network_error`; DeepSeek: `insufficient_system_resource`; vLLM: `abort`; Google: `MALFORMED_RESPONSE`."""
_OTHER_LABELS = frozenset({"text/plain", "application/json", "application/x-ndjson", "application/octet-stream"})
"""Media types with which some servers send event streams. The last one also stands for none."""
_OF_NUMBER: dict[float, Outcome] = {1: "stop", 2: "length", 3: "content_filter", 4: "content_filter"}
"""Google's numbers, which may stand for its words in JSON."""


class Reply(Protocol):
    """An incremental parser of one protocol. It does no I/O."""

    @property
    def done(self) -> bool:
        """Whether the end mark has arrived."""

    fault: VendorError | None
    """The error that ended the reply, until it is raised. The text before it is valid."""

    notice: Thinking | None
    """What the last call of `feed` or `end` read, if it is no text."""

    @property
    def usage(self) -> Usage | None: ...

    @property
    def finish(self) -> Finish | None:
        """Why the model stopped. This may be known before the last text."""

    @property
    def is_whole(self) -> bool:
        """Whether the text is complete even if the stream breaks off or an error follows."""

    def feed(self, piece: bytes) -> str:
        """Return the text in `piece`, up to the first error."""

    def end(self) -> str:
        """Return the text that was held back, at the end of the stream, even if it was cut off."""


def last_event(reply: Reply) -> str:
    """Return the text of an event that lacks the blank line behind it. If the event was cut off, it is left out."""
    if reply.done or reply.fault:
        return ""
    text = reply.feed(END_OF_EVENT)
    if isinstance(reply.fault, Garbled):
        reply.fault = None
    return text


async def _start_of_events(response: Incoming) -> bytes:
    """Return the beginning of a body that is an event stream despite its label. Raise `Garbled` if it is none."""
    start, is_one = b"", None
    while is_one is None and response.content_type in _OTHER_LABELS and (piece := await response.read()):
        start += piece
        is_one = is_event_stream(start)
    if not is_one:
        raise Garbled(response.vendor, f"answered with {response.content_type[:64]}, not an event stream")
    return start


class open_reply(PushSource[ChatItem]):  # noqa: N801 - used like a function
    """A context manager that opens `response` and returns the items of the reply: text, then usage and finish.

    A reply that does not end properly raises an error. `thoughts` leaves the thoughts out of the text.
    """

    __slots__ = (
        "_cut",
        "_exhausted",
        "_first",
        "_has_ended",
        "_last",
        "_opening",
        "_reply",
        "_response",
        "_thoughts",
    )

    def __init__(
        self, response: AbstractAsyncContextManager[Incoming], reply: Reply, thoughts: Thoughts | None = None
    ) -> None:
        self._opening = response
        self._reply = reply
        self._thoughts = thoughts
        self._first = b""
        """The beginning of the body, if it had to be read to know that it is an event stream."""
        self._exhausted = False
        self._cut: VendorError | None = None
        """The error that cut off the stream, until it is raised."""
        self._last: list[ChatItem] | None = None
        """The items after the end of the stream, last one first, or `None` before it."""
        self._has_ended = False
        """Whether `_last` has the items after the text."""

    async def __aenter__(self) -> AsyncIterator[ChatItem]:
        self._response = response = await self._opening.__aenter__()
        if response.content_type != "text/event-stream":
            try:
                self._first = await _start_of_events(response)
            except BaseException:
                await self._opening.__aexit__(None, None, None)
                raise
        return self

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, bool | None]:
        self._cut = None
        return self._opening.__aexit__(kind, error, trace)

    async def __anext__(self) -> ChatItem:
        if self._response.closed:
            raise StopAsyncIteration
        while not self._exhausted:
            piece, self._first = self._first, b""
            try:
                piece = piece or await self._response.read()
            except VendorError as error:
                self._cut, piece = error, b""
            text = self._reply.feed(piece)
            if self._thoughts is not None:
                text = self._thoughts.feed(text)
            self._check_end(ended=not piece)
            if text:
                return TextDelta(text)
            if (notice := self._notice()) is not None:
                return notice
        if (item := await self._next_last()) is None:
            raise StopAsyncIteration
        return item

    async def push_to(self, sink: Sink[ChatItem]) -> bool:
        reply, thoughts, accepts_more = self._reply, self._thoughts, True

        def push(piece: bytes) -> bool:
            nonlocal accepts_more
            text = reply.feed(piece)
            if thoughts is not None:
                text = thoughts.feed(text)
            if text:
                accepts_more = sink(TextDelta(text))
            elif (notice := self._notice()) is not None:
                accepts_more = sink(notice)
            return accepts_more and not reply.done and reply.fault is None

        if not (self._exhausted or self._response.closed):
            first, self._first = self._first, b""
            try:
                ended = (not first or push(first)) and not await self._response.push_to(push)
            except VendorError as error:
                self._cut, ended = error, True
            self._check_end(ended=ended)
        if not accepts_more:
            return True
        while (item := await self._next_last()) is not None:
            if not sink(item):
                return True
        return False

    def _notice(self) -> ChatItem | None:
        """Return what was read if it was no text. Nothing is returned with text."""
        thoughts = self._thoughts
        if thoughts is not None and thoughts.were_shown:
            thoughts.were_shown = False
            return WITHDRAWAL
        notice, self._reply.notice = self._reply.notice, None
        return THINKING if thoughts is not None and thoughts.hides else notice

    def _check_end(self, *, ended: bool) -> None:
        self._exhausted = ended or self._reply.done or self._reply.fault is not None

    async def _next_last(self) -> ChatItem | None:
        """Return the next item after the end of the stream. Raise the error of the reply after its text."""
        if self._response.closed:
            return None
        if self._last is None:
            text = self._last_text()
            notice = self._notice()
            self._last = ([TextDelta(text)] if text else []) + ([notice] if notice is not None else [])
        if not self._last and not self._has_ended:
            self._last, self._has_ended = await self._ending(), True
        return self._last.pop() if self._last else None

    def _last_text(self) -> str:
        reply, thoughts = self._reply, self._thoughts
        text = reply.end()
        if thoughts is None:
            return text
        return thoughts.end(text) if reply.done or reply.is_whole else thoughts.cut(text)

    def _take_error(self) -> VendorError:
        """Return the error that ended the stream. It is not kept, as its traceback will refer to this object."""
        error = self._reply.fault or self._cut
        self._reply.fault = self._cut = None
        assert error is not None, "called after an error"
        return error

    async def _ending(self) -> list[ChatItem]:
        """Return the items after the text, last one first. Raise the error of the reply."""
        reply = self._reply
        if reply.is_whole:
            self._cut = reply.fault = None
        elif not (self._cut is None and reply.fault is None):
            raise self._take_error()
        elif not reply.done and reply.finish is None:
            raise Garbled(self._response.vendor, "ended its stream without a final event", retryable=True)
        if reply.done:
            await self._response.drain()
        if self._thoughts is not None and self._thoughts.is_empty:
            raise Empty(self._response.vendor, "sent an empty response")
        finish = reply.finish or Finish("stop")
        return [finish] if reply.usage is None else [finish, reply.usage]


def outcome_of(reason: Any, *, unknown: Outcome = "stop") -> Outcome | None:
    """Return what a finish reason means, or `None` if it is none. `unknown` is the meaning of other words."""
    if isinstance(reason, list):
        reason = next(iter(reason), None)
    if isinstance(reason, dict):
        reason = reason.get("type")
    if not reason:
        return None
    if not isinstance(reason, str):
        return _OF_NUMBER.get(reason, unknown) if isinstance(reason, int | float) else unknown
    word = _word(reason)
    if word in _NO_REASON:
        return None
    if (outcome := _OUTCOMES.get(word)) is not None:
        return outcome
    return "broken" if _BROKEN.search(word) else unknown


def _word(reason: str) -> str:
    """Return a reason in one spelling: `FinishReason.MAX_TOKENS` and `max-tokens` are `max_tokens`."""
    return reason.strip().rpartition(".")[2].lower().replace("-", "_").replace(" ", "_")


def broken_off(vendor: str, reason: Any) -> Refused:
    """Return the error for a reason that means `broken`."""
    return Refused(vendor, f"broke off its answer: {str(reason)[:64]}", retryable=True)
