"""A late strategy is hedged: the first with output wins, and the other is closed and recorded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from streams.tasks import background
from vendors.calls.attempts import Attempt, AttemptRecord
from vendors.calls.fallback import AllStrategiesFailed, first_success
from vendors.calls.gate import Gate, GatePolicy
from vendors.calls.meter import Meter
from vendors.errors import Garbled, Refused
from vendors.protocols import ChatItem, TextDelta, Usage


@dataclass
class Vendor:
    """Yields its words once `go` is set, then its usage. An exception among the words is raised."""

    name: str
    words: list[str | Exception]
    hedge_after_s: float | None = None
    go: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False
    gate: Gate = field(default_factory=lambda: Gate("test", GatePolicy()))

    def attempt(self) -> Attempt[ChatItem]:
        return Attempt(
            self.name,
            "llm",
            "acme",
            self._open,
            lambda item: isinstance(item, TextDelta),
            first_output_s=5,
            between_s=5,
            hedge=self.hedge_after_s,
            gate=self.gate,
            meter=lambda: Meter(3),
        )

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[AsyncIterator[ChatItem]]:
        self.begun.set()
        try:
            yield self._items()
        finally:
            self.closed = True

    async def _items(self) -> AsyncIterator[ChatItem]:
        await self.go.wait()
        for word in self.words:
            if isinstance(word, Exception):
                raise word
            yield TextDelta(word)
        yield Usage(7, len(self.words))


def quick(name: str, *words: str | Exception) -> Vendor:
    vendor = Vendor(name, list(words))
    vendor.go.set()
    return vendor


async def heard(*vendors: Vendor) -> tuple[str, str, list[AttemptRecord]]:
    records: list[AttemptRecord] = []
    async with first_success([vendor.attempt() for vendor in vendors], records) as (winner, items):
        text = "".join([item.text async for item in items if isinstance(item, TextDelta)])
    return winner.strategy, text, records


def outcomes(records: list[AttemptRecord]) -> list[tuple[str, str]]:
    return [(record.strategy, record.outcome) for record in records]


async def test_the_second_strategy_wins_when_the_first_is_late() -> None:
    late, second = Vendor("late", ["x"], hedge_after_s=0.01), quick("second", "Hel", "lo")
    winner, text, records = await heard(late, second)
    assert (winner, text) == ("second", "Hello")
    assert outcomes(records) == [("late", "hedged"), ("second", "won")]
    assert late.closed
    assert second.closed
    assert (records[0].meter.source, records[0].meter.usage) == ("estimated", Usage(3, 0))
    assert (records[1].meter.source, records[1].meter.usage) == ("vendor", Usage(7, 2))


async def test_the_first_strategy_may_still_win() -> None:
    first, second = Vendor("first", ["Here"], hedge_after_s=0.01), Vendor("second", ["x"])

    async def then_speak() -> None:
        await second.begun.wait()
        first.go.set()

    async with background(then_speak()):
        winner, text, records = await heard(first, second)
    assert (winner, text) == ("first", "Here")
    assert outcomes(records) == [("first", "won"), ("second", "hedged")]
    assert second.closed


async def test_a_first_strategy_that_answers_in_time_is_not_hedged() -> None:
    first, second = replace(quick("first", "Here"), hedge_after_s=5), quick("second", "x")
    winner, text, records = await heard(first, second)
    assert (winner, text, outcomes(records)) == ("first", "Here", [("first", "won")])
    assert not second.begun.is_set()


async def test_an_early_failure_is_followed_by_the_next_strategy() -> None:
    first = replace(quick("first", Refused("acme", "answered 500")), hedge_after_s=5)
    winner, text, records = await heard(first, quick("second", "There"))
    assert (winner, text) == ("second", "There")
    assert outcomes(records) == [("first", "failed"), ("second", "won")]


async def test_the_other_strategy_continues_when_one_of_two_fails() -> None:
    late, bad = Vendor("late", ["Slow"], hedge_after_s=0.01), quick("bad", Garbled("acme", "sent nonsense"))

    async def then_speak() -> None:
        await bad.begun.wait()
        late.go.set()

    async with background(then_speak()):
        winner, text, records = await heard(late, bad)
    assert (winner, text) == ("late", "Slow")
    assert outcomes(records) == [("late", "won"), ("bad", "failed")]


async def test_a_third_strategy_is_called_when_both_fail() -> None:
    late = Vendor("late", [Garbled("acme", "sent nonsense")], hedge_after_s=0.01)
    bad = quick("bad", Garbled("acme", "sent nonsense"))

    async def then_fail() -> None:
        await bad.begun.wait()
        late.go.set()

    async with background(then_fail()):
        winner, _, records = await heard(late, bad, quick("third", "Me"))
    assert winner == "third"
    assert sorted(outcomes(records)[:2]) == [("bad", "failed"), ("late", "failed")]


async def test_without_a_hedging_budget_the_late_strategy_is_awaited() -> None:
    late, second = Vendor("late", ["At last"], hedge_after_s=0.01), quick("second", "x")
    assert second.gate.take_hedge()

    async def then_speak() -> None:
        await late.begun.wait()
        await asyncio.sleep(0.05)  # The hedge, whose timer is shorter, would begin first.
        late.go.set()

    async with background(then_speak()):
        winner, _, records = await heard(late, second)
    assert (winner, outcomes(records)) == ("late", [("late", "won")])


async def test_errors_of_a_hedged_winner_reach_the_reader() -> None:
    late, second = (
        Vendor("late", ["x"], hedge_after_s=0.01),
        quick("second", "Half", Garbled("acme", "sent nonsense")),
    )
    records: list[AttemptRecord] = []
    with pytest.raises(Garbled):
        async with first_success([late.attempt(), second.attempt()], records) as (_, items):
            assert [item async for item in items] == [TextDelta("Half")]
    assert outcomes(records) == [("late", "hedged"), ("second", "failed")]
    assert second.closed


async def test_leaving_early_closes_a_hedged_winner_and_records_its_usage() -> None:
    late, second = Vendor("late", ["x"], hedge_after_s=0.01), quick("second", "Half", " of it")
    records: list[AttemptRecord] = []
    async with first_success([late.attempt(), second.attempt()], records) as (_, items):
        assert await anext(items) == TextDelta("Half")
    assert second.closed
    assert outcomes(records)[1][0] == "second"
    assert records[1].outcome in {"canceled", "won"}


async def test_the_final_error_lists_attempts_in_their_start_order() -> None:
    one = replace(quick("one", Refused("acme", "answered 500")), hedge_after_s=1)
    two = quick("two", Refused("acme", "answered 503"))
    with pytest.raises(AllStrategiesFailed) as failed:
        await heard(one, two)
    assert [attempt["strategy"] for attempt in failed.value.extra["attempts"]] == ["one", "two"]


async def test_no_hedge_is_started_while_the_input_arrives() -> None:
    input_complete = asyncio.Event()

    async def clock() -> float:
        await input_complete.wait()
        return 0

    late, second = Vendor("late", ["x"], hedge_after_s=0.01), quick("second", "Heard")
    attempts = [replace(late.attempt(), clock=clock), second.attempt()]

    async def ask() -> str:
        async with first_success(attempts) as (winner, _):
            return winner.strategy

    async with background(ask()) as asking:
        await late.begun.wait()
        await asyncio.sleep(0.03)  # The hedge, whose timer is shorter, would begin first.
        assert not second.begun.is_set()
        input_complete.set()
        assert await asking == "second"
