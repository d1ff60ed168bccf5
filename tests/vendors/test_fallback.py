"""The first strategy that has output speaks; what failed before it is told, closed and never heard."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from streams.tasks import background
from streams.wire.errors import ConfigInvalid, ItemNotFound
from vendors.errors import Empty, Garbled, Refused, TimedOut
from vendors.fallback import AllStrategiesFailed, Attempt, failed_attempt, first_success

HELD = "held"
"""An item that only announces output."""

Step = str | Exception | Callable[[], Awaitable[None]]


async def for_ever() -> None:
    await asyncio.Event().wait()


async def a_moment() -> None:
    await asyncio.sleep(0.02)


class Stage:
    """Makes attempts that play a script, and keeps what happened in order."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.begun = asyncio.Event()

    def attempt(
        self,
        name: str,
        *steps: Step,
        opening: Step = "",
        first_output_s: float = 5,
        between_s: float = 5,
    ) -> Attempt[str]:
        async def items() -> AsyncIterator[str]:
            for step in steps:
                if isinstance(step, str):
                    yield step
                else:
                    await self._take(step)

        @asynccontextmanager
        async def play() -> AsyncIterator[AsyncIterator[str]]:
            self.story.append(f"{name} opened")
            try:
                await self._take(opening)
                yield items()
            finally:
                await asyncio.sleep(0)
                self.story.append(f"{name} closed")

        return Attempt(name, "llm", "acme", play, lambda item: item != HELD, first_output_s, between_s)

    async def _take(self, step: Step) -> None:
        if isinstance(step, Exception):
            raise step
        if not isinstance(step, str):
            self.begun.set()
            await step()


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def heard(attempts: Sequence[Attempt[str]], into: list[str] | None = None) -> tuple[str, list[str]]:
    seen = [] if into is None else into
    async with first_success(attempts) as (winner, items):
        async for item in items:
            seen.append(item)
    return winner.strategy, seen


async def failures(attempts: Sequence[Attempt[str]]) -> list[dict[str, Any]]:
    with pytest.raises(AllStrategiesFailed) as failed:
        await heard(attempts)
    assert failed.value.error_type == "all_strategies_failed"
    told: list[dict[str, Any]] = failed.value.extra["attempts"]
    return told


def counted(outcome: str) -> float:
    labels = {"stage": "llm", "vendor": "acme", "outcome": outcome}
    return REGISTRY.get_sample_value("parley_vendor_attempts_total", labels) or 0


async def test_first_strategy_speaks_and_no_other_is_asked(stage: Stage):
    won, lost = counted("won"), counted("failed")

    assert await heard([stage.attempt("a", "1", "2"), stage.attempt("b", "3")]) == ("a", ["1", "2"])

    assert stage.story == ["a opened", "a closed"]
    assert (counted("won") - won, counted("failed") - lost) == (1, 0)


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        pytest.param(["never"], {"opening": Refused("acme", "answered 500")}, id="refuses"),
        pytest.param([Garbled("acme", "sent nonsense")], {}, id="fails"),
        pytest.param([HELD, Garbled("acme", "sent nonsense")], {}, id="begins and fails"),
        pytest.param([], {}, id="is empty"),
        pytest.param([HELD], {}, id="begins and is empty"),
        pytest.param([for_ever], {"first_output_s": 0.02}, id="is silent"),
        pytest.param([HELD, for_ever], {"first_output_s": 0.02}, id="begins and is silent"),
        pytest.param(["never"], {"opening": for_ever, "first_output_s": 0.02}, id="does not open"),
        pytest.param([TimeoutError()], {}, id="has a timeout of its own"),
        pytest.param(["never"], {"opening": ConfigInvalid("speech a: voice is unknown")}, id="is badly configured"),
    ],
)
async def test_second_strategy_speaks_when_the_first_has_no_output(
    stage: Stage, steps: list[Step], options: dict[str, Any]
):
    won, lost = counted("won"), counted("failed")

    attempts = [stage.attempt("a", *steps, **options), stage.attempt("b", HELD, "1", HELD, "2")]

    assert await heard(attempts) == ("b", [HELD, "1", HELD, "2"])
    assert stage.story == ["a opened", "a closed", "b opened", "b closed"]
    assert (counted("won") - won, counted("failed") - lost) == (1, 1)


async def test_losers_are_closed_before_the_block_runs(stage: Stage):
    attempts = [stage.attempt("a"), stage.attempt("b", Refused("acme", "no")), stage.attempt("c", "1")]

    async with first_success(attempts) as (winner, _):
        assert winner is attempts[2]
        assert stage.story == ["a opened", "a closed", "b opened", "b closed", "c opened"]

    assert stage.story[-1] == "c closed"


async def test_all_that_failed_are_told_in_order(stage: Stage):
    unknown = failed_attempt("gone", "llm", ItemNotFound("conversation gone"))
    attempts = [
        unknown,
        stage.attempt("slow", HELD, for_ever, first_output_s=0.03),
        stage.attempt("empty", HELD),
        stage.attempt("refusing", opening=Refused("acme", "answered 401: no", status=401)),
    ]

    told = await failures(attempts)

    assert [{**attempt, "elapsed_ms": 0} for attempt in told] == [
        {"strategy": strategy, "stage": "llm", "error_type": error_type, "message": message, "elapsed_ms": 0}
        for strategy, error_type, message in [
            ("gone", "item_not_found", "item_not_found: conversation gone"),
            ("slow", "backend unavailable", "backend unavailable: acme had no output in 0.03 s"),
            ("empty", "backend unavailable", "backend unavailable: acme answered with nothing"),
            ("refusing", "backend unavailable", "backend unavailable: acme answered 401: no"),
        ]
    ]
    assert 28 <= told[1]["elapsed_ms"] < 1000
    assert all(isinstance(attempt["elapsed_ms"], int) for attempt in told)


async def test_message_names_the_strategies_that_failed(stage: Stage):
    with pytest.raises(AllStrategiesFailed, match=r"^all_strategies_failed: every strategy failed \(a, b\)$"):
        await heard([stage.attempt("a"), stage.attempt("b")])


async def test_without_strategies_all_have_failed():
    assert await failures([]) == []


async def test_failure_after_output_is_raised_to_the_reader_and_no_other_is_asked(stage: Stage):
    seen: list[str] = []
    fault = Garbled("acme", "broke off")

    with pytest.raises(Garbled) as raised:
        await heard([stage.attempt("a", "1", fault), stage.attempt("b", "2")], seen)

    assert raised.value is fault
    assert seen == ["1"]
    assert stage.story == ["a opened", "a closed"]


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


@pytest.mark.parametrize("fault", [LookupError(), Refused("mine", "no"), Empty("mine", "nothing"), TimeoutError()])
async def test_fault_of_the_block_is_raised_as_it_is(stage: Stage, fault: Exception):
    async def block() -> None:
        async with first_success([stage.attempt("a", "1", "2"), stage.attempt("b", "3")]) as (_, items):
            await anext(items)
            raise fault

    with pytest.raises(type(fault)) as raised:
        await block()

    assert raised.value is fault
    assert stage.story == ["a opened", "a closed"]


async def test_block_that_does_not_read_closes_the_winner(stage: Stage):
    async with first_success([stage.attempt("a", "1", for_ever)]):
        pass

    assert stage.story == ["a opened", "a closed"]


@pytest.mark.parametrize(
    ("steps", "opening"),
    [
        pytest.param([], for_ever, id="opening"),
        pytest.param([for_ever], "", id="waiting"),
        pytest.param([HELD, for_ever], "", id="begun"),
        pytest.param(["1", for_ever], "", id="speaking"),
    ],
)
async def test_cancelling_closes_what_is_open_and_asks_no_other(stage: Stage, steps: list[Step], opening: Step):
    attempts = [stage.attempt("a", *steps, opening=opening), stage.attempt("b", "2")]

    async with background(heard(attempts)) as hearing:
        await stage.begun.wait()
        hearing.cancel()
        await asyncio.wait([hearing])

        assert hearing.cancelled()
        assert stage.story == ["a opened", "a closed"]


async def test_bug_in_a_client_is_no_failed_attempt(stage: Stage):
    with pytest.raises(ZeroDivisionError):
        await heard([stage.attempt("a", ZeroDivisionError()), stage.attempt("b", "2")])

    assert stage.story == ["a opened", "a closed"]


async def test_broken_strategy_is_a_failed_attempt_however_often_it_is_met(stage: Stage):
    fault = ConfigInvalid("conversation a: account is unknown")
    broken = failed_attempt("a", "tts", fault)

    depths = []
    for _ in range(3):
        assert await heard([broken, stage.attempt("b", "1")]) == ("b", ["1"])
        depth, trace = 0, fault.__traceback__
        while trace is not None:
            depth, trace = depth + 1, trace.tb_next
        depths.append(depth)

    assert depths[0] == depths[-1], "a fault that is kept must not keep the frames of every stream"


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


async def test_client_that_answers_its_cancellation_with_a_fault_leaves_the_task_as_it_was(stage: Stage) -> None:
    async def stubborn() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError:
            raise Refused("acme", "hung up") from None

    attempts = [stage.attempt("a", stubborn, first_output_s=0.02), stage.attempt("b", "1")]
    async with background(heard(attempts)) as hearing:
        assert await hearing == ("b", ["1"])
        assert hearing.cancelling() == 0
