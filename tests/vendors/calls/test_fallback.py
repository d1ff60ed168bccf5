"""The first strategy that has output wins. Attempts that failed before it are reported and closed."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY

from streams.tasks import background
from streams.wire.errors import ConfigInvalid, ItemNotFound
from tests.vendors.calls.scripted_attempts import HELD, ScriptedAttempts, Step, block_forever, run_attempts
from vendors.calls.attempts import Attempt, failed_attempt
from vendors.calls.fallback import AllStrategiesFailed, first_success
from vendors.errors import Empty, Garbled, Refused


@pytest.fixture
def script() -> ScriptedAttempts:
    return ScriptedAttempts()


async def failures(attempts: Sequence[Attempt[str]]) -> list[dict[str, Any]]:
    with pytest.raises(AllStrategiesFailed) as failed:
        await run_attempts(attempts)
    assert failed.value.error_type == "all_strategies_failed"
    reported: list[dict[str, Any]] = failed.value.extra["attempts"]
    return reported


def counted(outcome: str) -> float:
    labels = {"stage": "llm", "vendor": "acme", "outcome": outcome}
    return REGISTRY.get_sample_value("parley_vendor_attempts_total", labels) or 0


async def test_first_strategy_wins_and_no_other_is_called(script: ScriptedAttempts):
    won, lost = counted("won"), counted("failed")

    assert await run_attempts([script.attempt("a", "1", "2"), script.attempt("b", "3")]) == ("a", ["1", "2"])

    assert script.history == ["a opened", "a closed"]
    assert (counted("won") - won, counted("failed") - lost) == (1, 0)


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        pytest.param(["never"], {"opening": Refused("acme", "answered 500")}, id="refuses"),
        pytest.param([Garbled("acme", "sent nonsense")], {}, id="fails"),
        pytest.param([HELD, Garbled("acme", "sent nonsense")], {}, id="begins and fails"),
        pytest.param([], {}, id="is empty"),
        pytest.param([HELD], {}, id="begins and is empty"),
        pytest.param([block_forever], {"first_output_s": 0.02}, id="is silent"),
        pytest.param([HELD, block_forever], {"first_output_s": 0.02}, id="begins and is silent"),
        pytest.param(["never"], {"opening": block_forever, "first_output_s": 0.02}, id="does not open"),
        pytest.param([TimeoutError()], {}, id="has its own timeout"),
        pytest.param(["never"], {"opening": ConfigInvalid("speech a: voice is unknown")}, id="is badly configured"),
    ],
)
async def test_second_strategy_wins_if_the_first_has_no_output(
    script: ScriptedAttempts, steps: list[Step], options: dict[str, Any]
):
    won, lost = counted("won"), counted("failed")

    attempts = [script.attempt("a", *steps, **options), script.attempt("b", HELD, "1", HELD, "2")]

    assert await run_attempts(attempts) == ("b", [HELD, "1", HELD, "2"])
    assert script.history == ["a opened", "a closed", "b opened", "b closed"]
    assert (counted("won") - won, counted("failed") - lost) == (1, 1)


async def test_slower_strategies_are_closed_before_the_block_runs(script: ScriptedAttempts):
    attempts = [script.attempt("a"), script.attempt("b", Refused("acme", "no")), script.attempt("c", "1")]

    async with first_success(attempts) as (winner, _):
        assert winner is attempts[2]
        assert script.history == ["a opened", "a closed", "b opened", "b closed", "c opened"]

    assert script.history[-1] == "c closed"


async def test_error_lists_all_failed_strategies_in_order(script: ScriptedAttempts):
    unknown = failed_attempt("gone", "llm", ItemNotFound("conversation gone"))
    attempts = [
        unknown,
        script.attempt("slow", HELD, block_forever, first_output_s=0.03),
        script.attempt("empty", HELD),
        script.attempt("refusing", opening=Refused("acme", "answered 401: no", vendor_status=401)),
    ]

    reported = await failures(attempts)

    assert [{**attempt, "elapsed_ms": 0} for attempt in reported] == [
        {"strategy": strategy, "stage": "llm", "error_type": error_type, "message": message, "elapsed_ms": 0}
        for strategy, error_type, message in [
            ("gone", "item_not_found", "item_not_found: conversation gone"),
            ("slow", "backend unavailable", "backend unavailable: acme had no output within 0.03 s"),
            ("empty", "backend unavailable", "backend unavailable: acme sent an empty response"),
            ("refusing", "backend unavailable", "backend unavailable: acme answered 401: no"),
        ]
    ]
    assert 28 <= reported[1]["elapsed_ms"] < 1000
    assert all(isinstance(attempt["elapsed_ms"], int) for attempt in reported)


async def test_message_names_the_strategies_that_failed(script: ScriptedAttempts):
    with pytest.raises(AllStrategiesFailed, match=r"^all_strategies_failed: every strategy failed \(a, b\)$"):
        await run_attempts([script.attempt("a"), script.attempt("b")])


async def test_without_strategies_all_have_failed():
    assert await failures([]) == []


async def test_failure_after_output_is_raised_to_the_reader_and_no_other_is_called(script: ScriptedAttempts):
    seen: list[str] = []
    fault = Garbled("acme", "broke off")

    with pytest.raises(Garbled) as raised:
        await run_attempts([script.attempt("a", "1", fault), script.attempt("b", "2")], seen)

    assert raised.value is fault
    assert seen == ["1"]
    assert script.history == ["a opened", "a closed"]


@pytest.mark.parametrize("fault", [LookupError(), Refused("mine", "no"), Empty("mine", "nothing"), TimeoutError()])
async def test_error_of_the_block_is_raised_unchanged(script: ScriptedAttempts, fault: Exception):
    async def block() -> None:
        async with first_success([script.attempt("a", "1", "2"), script.attempt("b", "3")]) as (_, items):
            await anext(items)
            raise fault

    with pytest.raises(type(fault)) as raised:
        await block()

    assert raised.value is fault
    assert script.history == ["a opened", "a closed"]


async def test_a_block_that_does_not_read_closes_the_winner(script: ScriptedAttempts):
    async with first_success([script.attempt("a", "1", block_forever)]):
        pass

    assert script.history == ["a opened", "a closed"]


@pytest.mark.parametrize(
    ("steps", "opening"),
    [
        pytest.param([], block_forever, id="opening"),
        pytest.param([block_forever], "", id="waiting"),
        pytest.param([HELD, block_forever], "", id="begun"),
        pytest.param(["1", block_forever], "", id="speaking"),
    ],
)
async def test_cancelling_closes_open_attempts_and_calls_no_other(
    script: ScriptedAttempts, steps: list[Step], opening: Step
):
    attempts = [script.attempt("a", *steps, opening=opening), script.attempt("b", "2")]

    async with background(run_attempts(attempts)) as hearing:
        await script.begun.wait()
        hearing.cancel()
        await asyncio.wait([hearing])

        assert hearing.cancelled()
        assert script.history == ["a opened", "a closed"]


async def test_a_bug_in_a_client_is_not_a_failed_attempt(script: ScriptedAttempts):
    with pytest.raises(ZeroDivisionError):
        await run_attempts([script.attempt("a", ZeroDivisionError()), script.attempt("b", "2")])

    assert script.history == ["a opened", "a closed"]


async def test_broken_strategy_is_a_failed_attempt_each_time(script: ScriptedAttempts):
    fault = ConfigInvalid("conversation a: account is unknown")
    broken = failed_attempt("a", "tts", fault)

    depths = []
    for _ in range(3):
        assert await run_attempts([broken, script.attempt("b", "1")]) == ("b", ["1"])
        depth, trace = 0, fault.__traceback__
        while trace is not None:
            depth, trace = depth + 1, trace.tb_next
        depths.append(depth)

    assert depths[0] == depths[-1], "a fault that is kept must not keep the frames of every stream"


async def test_client_that_raises_an_error_when_cancelled_does_not_cancel_the_task(
    script: ScriptedAttempts,
) -> None:
    async def stubborn() -> None:
        try:
            await block_forever()
        except asyncio.CancelledError:
            raise Refused("acme", "hung up") from None

    attempts = [script.attempt("a", stubborn, first_output_s=0.02), script.attempt("b", "1")]
    async with background(run_attempts(attempts)) as hearing:
        assert await hearing == ("b", ["1"])
        assert hearing.cancelling() == 0
