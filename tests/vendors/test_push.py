"""A reply that is pushed to a function has the same items as one that is iterated."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from streams.push import drain_into
from tests.vendors.chat.openai_chat import DONE, MESSAGES, USAGE, event, finish, model, text
from tests.vendors.http.upstream import Upstream, cut, hold, streaming
from vendors.calls.attempts import Attempt, AttemptRecord
from vendors.calls.fallback import first_success
from vendors.errors import Garbled, TimedOut, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatItem, Finish, TextDelta, Usage

WORDS = [f"{number} " for number in range(60)]
REPLY = [*map(text, WORDS), finish("length"), USAGE, DONE]


def text_of(items: list[ChatItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


async def push(http: VendorHttp, upstream: Upstream, sink: Callable[[ChatItem], bool]) -> int:
    """Push a complete reply. Return how often `sink` stopped it."""
    stops = 0
    async with model(http, upstream).reply(MESSAGES) as items:
        while await drain_into(items, sink):
            stops += 1
    return stops


@pytest.mark.parametrize("apart", [False, True])
async def test_all_items_are_pushed_in_order(http: VendorHttp, upstream: Upstream, *, apart: bool):
    upstream.respond_with(streaming(REPLY, apart=apart))
    seen: list[ChatItem] = []
    assert await push(http, upstream, lambda item: seen.append(item) is None) == 0
    assert text_of(seen) == "".join(WORDS)
    assert seen[-2:] == [Usage(9, 2), Finish("length")]


@pytest.mark.parametrize("apart", [False, True])
async def test_a_sink_that_stops_and_continues_misses_nothing(http: VendorHttp, upstream: Upstream, *, apart: bool):
    upstream.respond_with(streaming(REPLY, apart=apart))
    seen: list[ChatItem] = []
    stops = await push(http, upstream, lambda item: seen.append(item) is not None)
    assert stops == len(seen) >= 3
    assert text_of(seen) == "".join(WORDS)
    assert seen[-2:] == [Usage(9, 2), Finish("length")]


@pytest.mark.parametrize(("end", "fault"), [(cut, "broke off"), (None, "without a final event")])
async def test_errors_are_raised_after_the_preceding_text(http: VendorHttp, upstream: Upstream, end, fault: str):
    upstream.respond_with(streaming([text("a"), text("b")], apart=True, end=end))
    seen: list[ChatItem] = []
    with pytest.raises(VendorError, match=fault):
        await push(http, upstream, lambda item: seen.append(item) is None)
    assert text_of(seen) == "ab"


async def test_errors_of_the_vendor_in_the_middle_are_raised(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a"), event(error={"message": "overloaded"})], apart=True, end=hold))
    seen: list[ChatItem] = []
    with pytest.raises(VendorError):
        await push(http, upstream, lambda item: seen.append(item) is None)
    assert text_of(seen) == "a"


async def test_error_of_the_sink_is_raised_unchanged_and_closes_the_connection(
    http: VendorHttp, upstream: Upstream
):
    upstream.respond_with(streaming([text("a"), text("b")], apart=True, end=hold))

    def sink(item: ChatItem) -> bool:
        if item == TextDelta("b"):
            raise LookupError
        return True

    with pytest.raises(LookupError):
        await push(http, upstream, sink)
    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_cancelling_a_push_closes_the_vendor_call(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a")], end=hold))
    first = asyncio.Event()
    with suppress(TimeoutError):
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            pushing = tasks.create_task(push(http, upstream, lambda _: first.set() is None))
            await first.wait()
            pushing.cancel()
    assert pushing.cancelled()
    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_silence_between_two_items_times_out(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([*map(text, WORDS)], apart=True, end=hold))
    attempt = Attempt(
        "one", "llm", "acme", lambda: model(http, upstream).reply(MESSAGES), lambda _: True, 5, between_s=0.4
    )
    received_at: list[float] = []
    records: list[AttemptRecord] = []
    loop = asyncio.get_running_loop()
    with pytest.raises(TimedOut, match="was silent for"):
        async with first_success([attempt], records) as (_, items):
            await drain_into(items, lambda _: received_at.append(loop.time()) is None)
    assert loop.time() - received_at[-1] >= 0.39
    assert received_at[-1] - received_at[0] > 0.4
    assert records[0].outcome == "failed"


async def test_tokens_of_pushed_items_are_counted(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("12345678"), text("1234"), DONE], apart=True))
    records: list[AttemptRecord] = []
    attempt = Attempt("one", "llm", "acme", lambda: model(http, upstream).reply(MESSAGES), lambda _: True, 5, 5)
    async with first_success([attempt], records) as (_, items):
        assert not await drain_into(items, lambda _: True)
    assert records[0].outcome == "won"
    assert records[0].usage.output_token == 3


async def test_nothing_is_pushed_after_the_block(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a"), text("b")], end=hold))
    async with model(http, upstream).reply(MESSAGES) as items:
        assert await drain_into(items, lambda _: False)
    assert not await drain_into(items, lambda _: pytest.fail("nothing may come"))


async def test_invalid_reply_is_refused_before_anything_is_pushed(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"<html>"], content_type="text/html"))
    with pytest.raises(Garbled):
        await push(http, upstream, lambda _: pytest.fail("nothing may come"))
