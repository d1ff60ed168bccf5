"""Timeouts for the first output, between two outputs, and while the input arrives."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from streams.tasks import background
from tests.vendors.calls.scripted_attempts import HELD, ScriptedAttempts, block_forever, pause, run_attempts
from vendors.calls.attempts import Attempt
from vendors.calls.fallback import AllStrategiesFailed, first_success
from vendors.errors import TimedOut


@pytest.fixture
def script() -> ScriptedAttempts:
    return ScriptedAttempts()


async def test_silence_after_output_is_raised_to_the_reader(script: ScriptedAttempts):
    seen: list[str] = []

    with pytest.raises(TimedOut, match=r"acme was silent for 0.03 s$"):
        await run_attempts(
            [script.attempt("a", "1", block_forever, between_s=0.03), script.attempt("b", "2")], seen
        )

    assert seen == ["1"]
    assert script.history == ["a opened", "a closed"]


async def test_the_idle_timeout_is_paused_while_nobody_reads(script: ScriptedAttempts):
    seen: list[str] = []
    async with first_success([script.attempt("a", "1", pause, "2", "3", between_s=0.3)]) as (_, items):
        async for item in items:
            seen.append(item)
            await asyncio.sleep(0.35)

    assert seen == ["1", "2", "3"]


async def test_first_output_may_take_longer_than_later_ones(script: ScriptedAttempts):
    attempt = script.attempt("a", pause, pause, HELD, pause, "1", "2", between_s=0.01)

    assert await run_attempts([attempt]) == ("a", [HELD, "1", "2"])


async def test_the_first_output_timeout_does_not_bound_the_whole_answer(script: ScriptedAttempts):
    attempt = script.attempt("a", "1", pause, "2", pause, "3", first_output_s=0.03)

    assert await run_attempts([attempt]) == ("a", ["1", "2", "3"])


@pytest.mark.parametrize("first", [True, False], ids=["first output", "later output"])
async def test_output_that_arrived_during_a_blocked_loop_is_not_late(script: ScriptedAttempts, first: bool) -> None:
    loop = asyncio.get_running_loop()
    vendor, line = socket.socketpair()
    with vendor, line:
        line.setblocking(False)

        async def wait_for_input() -> None:
            loop.call_soon(block_loop)
            await loop.sock_recv(line, 1)

        def block_loop() -> None:
            vendor.send(b"2")
            time.sleep(1)  # noqa: TID251 - as if the process were stopped

        before = [] if first else ["1"]
        attempt = script.attempt("a", *before, wait_for_input, "2", first_output_s=0.5, between_s=0.5)
        assert await run_attempts([attempt]) == ("a", [*before, "2"])


async def test_silent_vendors_time_out_after_the_loop_was_blocked(script: ScriptedAttempts) -> None:
    loop = asyncio.get_running_loop()

    async def wait_forever() -> None:
        loop.call_soon(time.sleep, 1)  # noqa: TID251 - as if the process were stopped
        await block_forever()

    with pytest.raises(TimedOut, match=r"acme was silent for 0.5 s$"):
        await run_attempts([script.attempt("a", "1", wait_forever, between_s=0.5)])
    assert script.history == ["a opened", "a closed"]


class Input:
    """The input of a stream whose user is still speaking."""

    def __init__(self, *, longer_s: float = 0) -> None:
        self.whole = asyncio.Event()
        self._longer_s = longer_s

    async def clock(self) -> float:
        await self.whole.wait()
        return self._longer_s


async def test_the_first_output_timeout_starts_when_the_input_is_complete(script: ScriptedAttempts) -> None:
    live_input = Input()

    async def wait_for_input() -> None:
        await asyncio.sleep(0.35)
        live_input.whole.set()
        await pause()

    attempt = replace(
        script.attempt("patient", wait_for_input, "heard", first_output_s=0.3), clock=live_input.clock
    )
    async with first_success([attempt]) as (_, items):
        assert [item async for item in items] == ["heard"]


async def test_time_for_the_first_output_runs_from_the_end_of_the_input(script: ScriptedAttempts) -> None:
    live_input = Input()
    live_input.whole.set()
    silent = replace(script.attempt("silent", block_forever, first_output_s=0.01), clock=live_input.clock)
    with pytest.raises(AllStrategiesFailed):
        async with first_success([silent]):
            pass
    assert script.history == ["silent opened", "silent closed"]


async def test_the_time_limit_grows_with_the_input(script: ScriptedAttempts) -> None:
    live_input = Input(longer_s=5)
    live_input.whole.set()
    slow = replace(script.attempt("slow", pause, "heard", first_output_s=0.001), clock=live_input.clock)
    async with first_success([slow]) as (_, items):
        assert [item async for item in items] == ["heard"]


async def test_vendors_without_streaming_are_called_after_the_input(script: ScriptedAttempts) -> None:
    live_input = Input()
    whole = replace(script.attempt("whole", "heard"), clock=live_input.clock, early=False)

    async def ask() -> list[str]:
        async with first_success([whole]) as (_, items):
            return [item async for item in items]

    async with background(ask()) as asking:
        await pause()
        assert script.history == []
        live_input.whole.set()
        assert await asking == ["heard"]


async def test_a_vendor_that_sends_only_announcements_times_out(script: ScriptedAttempts) -> None:
    async def announces() -> AsyncIterator[str]:
        while True:
            yield HELD
            await asyncio.sleep(0)

    @asynccontextmanager
    async def play() -> AsyncIterator[AsyncIterator[str]]:
        yield announces()

    endless = Attempt("endless", "llm", "acme", play, lambda item: item != HELD, 60, 60)
    async with first_success([endless, script.attempt("next", "here")]) as (winner, _):
        assert winner.strategy == "next"


async def test_timeouts_work_in_a_cancelled_task(script: ScriptedAttempts) -> None:
    requested = asyncio.Event()
    seen: list[str] = []

    async def says_goodbye() -> None:
        try:
            requested.set()
            await block_forever()
        finally:
            late = script.attempt("late", block_forever, first_output_s=0.02)
            await run_attempts([late, script.attempt("silent", "bye", block_forever, between_s=0.02)], seen)

    async def cut_off() -> None:
        async with background(says_goodbye()) as task:
            await requested.wait()
            task.cancel()
            await asyncio.wait([task])

    with pytest.raises(TimedOut, match="was silent for"):
        await cut_off()
    assert seen == ["bye"]
    assert script.history == ["late opened", "late closed", "silent opened", "silent closed"]


async def test_the_limit_between_outputs_may_be_shorter_than_that_of_the_first(
    script: ScriptedAttempts,
) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(TimedOut, match=r"was silent for 0.03 s"):
        await run_attempts([script.attempt("a", pause, "1", block_forever, first_output_s=60, between_s=0.03)])
    assert loop.time() - begun < 5
