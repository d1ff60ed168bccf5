"""How long a strategy may be silent: before its first output, between two, while the input goes on."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from streams.tasks import background
from tests.vendors.stage import HELD, Stage, a_moment, for_ever, heard
from vendors.errors import TimedOut
from vendors.fallback import AllStrategiesFailed, Attempt, first_success


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_silence_after_output_is_raised_to_the_reader(stage: Stage):
    seen: list[str] = []

    with pytest.raises(TimedOut, match=r"acme was silent for 0.03 s$"):
        await heard([stage.attempt("a", "1", for_ever, between_s=0.03), stage.attempt("b", "2")], seen)

    assert seen == ["1"]
    assert stage.story == ["a opened", "a closed"]


async def test_time_between_outputs_stands_still_while_nobody_reads(stage: Stage):
    seen: list[str] = []
    async with first_success([stage.attempt("a", "1", a_moment, "2", "3", between_s=0.05)]) as (_, items):
        async for item in items:
            seen.append(item)
            await asyncio.sleep(0.08)

    assert seen == ["1", "2", "3"]


async def test_first_output_may_take_longer_than_later_ones(stage: Stage):
    attempt = stage.attempt("a", a_moment, a_moment, HELD, a_moment, "1", "2", between_s=0.01)

    assert await heard([attempt]) == ("a", [HELD, "1", "2"])


async def test_end_of_the_first_output_time_does_not_bound_the_whole(stage: Stage):
    attempt = stage.attempt("a", "1", a_moment, "2", a_moment, "3", first_output_s=0.03)

    assert await heard([attempt]) == ("a", ["1", "2", "3"])


@pytest.mark.parametrize("first", [True, False], ids=["first output", "later output"])
async def test_output_that_arrived_while_the_loop_stood_still_is_not_too_late(stage: Stage, first: bool) -> None:
    loop = asyncio.get_running_loop()
    vendor, line = socket.socketpair()
    with vendor, line:
        line.setblocking(False)

        async def hears() -> None:
            loop.call_soon(stand_still)
            await loop.sock_recv(line, 1)

        def stand_still() -> None:
            vendor.send(b"2")
            time.sleep(1)  # noqa: TID251 - as if the process were stopped

        before = [] if first else ["1"]
        attempt = stage.attempt("a", *before, hears, "2", first_output_s=0.5, between_s=0.5)
        assert await heard([attempt]) == ("a", [*before, "2"])


async def test_vendor_that_was_silent_while_the_loop_stood_still_is_given_up(stage: Stage) -> None:
    loop = asyncio.get_running_loop()

    async def hears_nothing() -> None:
        loop.call_soon(time.sleep, 1)  # noqa: TID251 - as if the process were stopped
        await for_ever()

    with pytest.raises(TimedOut, match=r"acme was silent for 0.5 s$"):
        await heard([stage.attempt("a", "1", hears_nothing, between_s=0.5)])
    assert stage.story == ["a opened", "a closed"]


class Input:
    """Of a stream that is still being spoken."""

    def __init__(self, *, longer_s: float = 0) -> None:
        self.whole = asyncio.Event()
        self._longer_s = longer_s

    async def clock(self) -> float:
        await self.whole.wait()
        return self._longer_s


async def test_time_for_the_first_output_stands_still_until_the_input_is_whole(stage: Stage) -> None:
    spoken = Input()

    async def hears() -> None:
        await a_moment()
        spoken.whole.set()
        await a_moment()

    patient = replace(stage.attempt("patient", hears, "heard", first_output_s=0.03), clock=spoken.clock)
    async with first_success([patient]) as (_, items):
        assert [item async for item in items] == ["heard"]


async def test_time_for_the_first_output_runs_from_the_end_of_the_input(stage: Stage) -> None:
    spoken = Input()
    spoken.whole.set()
    silent = replace(stage.attempt("silent", for_ever, first_output_s=0.01), clock=spoken.clock)
    with pytest.raises(AllStrategiesFailed):
        async with first_success([silent]):
            pass
    assert stage.story == ["silent opened", "silent closed"]


async def test_longer_input_gives_more_time(stage: Stage) -> None:
    spoken = Input(longer_s=5)
    spoken.whole.set()
    slow = replace(stage.attempt("slow", a_moment, "heard", first_output_s=0.001), clock=spoken.clock)
    async with first_success([slow]) as (_, items):
        assert [item async for item in items] == ["heard"]


async def test_vendor_that_does_not_stream_is_called_behind_the_input(stage: Stage) -> None:
    spoken = Input()
    whole = replace(stage.attempt("whole", "heard"), clock=spoken.clock, early=False)

    async def ask() -> list[str]:
        async with first_success([whole]) as (_, items):
            return [item async for item in items]

    async with background(ask()) as asking:
        await a_moment()
        assert stage.story == []
        spoken.whole.set()
        assert await asking == ["heard"]


async def test_vendor_that_only_ever_announces_is_given_up(stage: Stage) -> None:
    async def announces() -> AsyncIterator[str]:
        while True:
            yield HELD
            await asyncio.sleep(0)

    @asynccontextmanager
    async def play() -> AsyncIterator[AsyncIterator[str]]:
        yield announces()

    endless = Attempt("endless", "llm", "acme", play, lambda item: item != HELD, 60, 60)
    async with first_success([endless, stage.attempt("next", "here")]) as (winner, _):
        assert winner.strategy == "next"


async def test_limits_hold_in_a_task_that_was_told_to_end_and_still_has_to_say_something(stage: Stage) -> None:
    asked = asyncio.Event()
    seen: list[str] = []

    async def says_goodbye() -> None:
        try:
            asked.set()
            await for_ever()
        finally:
            late = stage.attempt("late", for_ever, first_output_s=0.02)
            await heard([late, stage.attempt("silent", "bye", for_ever, between_s=0.02)], seen)

    async def cut_off() -> None:
        async with background(says_goodbye()) as task:
            await asked.wait()
            task.cancel()
            await asyncio.wait([task])

    with pytest.raises(TimedOut, match="was silent for"):
        await cut_off()
    assert seen == ["bye"]
    assert stage.story == ["late opened", "late closed", "silent opened", "silent closed"]


async def test_shorter_limit_between_outputs_is_kept_behind_a_long_one_for_the_first(stage: Stage) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(TimedOut, match=r"was silent for 0.03 s"):
        await heard([stage.attempt("a", a_moment, "1", for_ever, first_output_s=60, between_s=0.03)])
    assert loop.time() - begun < 5
