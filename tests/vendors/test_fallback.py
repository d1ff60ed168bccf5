"""The first strategy that has output wins. Attempts that failed before it are reported and closed."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY

from streams.tasks import background
from streams.wire.errors import ConfigInvalid, ItemNotFound
from tests.vendors.stage import HELD, Stage, Step, for_ever, heard
from vendors.errors import Empty, Garbled, Refused
from vendors.fallback import AllStrategiesFailed, Attempt, failed_attempt, first_success


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def failures(attempts: Sequence[Attempt[str]]) -> list[dict[str, Any]]:
    with pytest.raises(AllStrategiesFailed) as failed:
        await heard(attempts)
    assert failed.value.error_type == "all_strategies_failed"
    told: list[dict[str, Any]] = failed.value.extra["attempts"]
    return told


def counted(outcome: str) -> float:
    labels = {"stage": "llm", "vendor": "acme", "outcome": outcome}
    return REGISTRY.get_sample_value("parley_vendor_attempts_total", labels) or 0


async def test_first_strategy_wins_and_no_other_is_called(stage: Stage):
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
async def test_second_strategy_wins_if_the_first_has_no_output(
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


async def test_error_lists_all_failed_strategies_in_order(stage: Stage):
    unknown = failed_attempt("gone", "llm", ItemNotFound("conversation gone"))
    attempts = [
        unknown,
        stage.attempt("slow", HELD, for_ever, first_output_s=0.03),
        stage.attempt("empty", HELD),
        stage.attempt("refusing", opening=Refused("acme", "answered 401: no", vendor_status=401)),
    ]

    told = await failures(attempts)

    assert [{**attempt, "elapsed_ms": 0} for attempt in told] == [
        {"strategy": strategy, "stage": "llm", "error_type": error_type, "message": message, "elapsed_ms": 0}
        for strategy, error_type, message in [
            ("gone", "item_not_found", "item_not_found: conversation gone"),
            ("slow", "backend unavailable", "backend unavailable: acme had no output within 0.03 s"),
            ("empty", "backend unavailable", "backend unavailable: acme sent an empty response"),
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


async def test_failure_after_output_is_raised_to_the_reader_and_no_other_is_called(stage: Stage):
    seen: list[str] = []
    fault = Garbled("acme", "broke off")

    with pytest.raises(Garbled) as raised:
        await heard([stage.attempt("a", "1", fault), stage.attempt("b", "2")], seen)

    assert raised.value is fault
    assert seen == ["1"]
    assert stage.story == ["a opened", "a closed"]


@pytest.mark.parametrize("fault", [LookupError(), Refused("mine", "no"), Empty("mine", "nothing"), TimeoutError()])
async def test_error_of_the_block_is_raised_unchanged(stage: Stage, fault: Exception):
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
async def test_cancelling_closes_open_attempts_and_calls_no_other(stage: Stage, steps: list[Step], opening: Step):
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


async def test_broken_strategy_is_a_failed_attempt_each_time(stage: Stage):
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


async def test_client_that_raises_an_error_when_cancelled_does_not_cancel_the_task(stage: Stage) -> None:
    async def stubborn() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError:
            raise Refused("acme", "hung up") from None

    attempts = [stage.attempt("a", stubborn, first_output_s=0.02), stage.attempt("b", "1")]
    async with background(heard(attempts)) as hearing:
        assert await hearing == ("b", ["1"])
        assert hearing.cancelling() == 0
