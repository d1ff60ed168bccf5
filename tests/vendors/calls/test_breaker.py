"""A breaker opens on a ratio in a window and probes; a bulkhead bounds concurrency; hedging has a budget."""

import asyncio

import pytest

from streams.tasks import background
from vendors.calls.breaker import Breaker, BreakerPolicy, Bulkhead, BulkheadFull
from vendors.calls.gate import Gate, GatePolicy
from vendors.errors import Refused

POLICY = BreakerPolicy(failure_ratio=0.5, min_calls=4, window_s=30, open_s=10)
FAILURE = Refused("acme", "answered 500", vendor_status=500)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(POLICY, clock)
    for _ in range(2):
        breaker.succeeded()
    for _ in range(2):
        breaker.failed()
    return breaker


async def fail(gate: Gate, *, times: int) -> None:
    for _ in range(times):
        admission = await gate.admit("acme")
        admission.failed(FAILURE)
        admission.release()


async def answer() -> str:
    return "answer"


async def never() -> str:
    raise AssertionError("the call is not made")


def test_a_breaker_opens_at_its_ratio_after_enough_calls() -> None:
    breaker = Breaker(POLICY, Clock())
    for _ in range(3):
        assert breaker.allow()
        breaker.failed()
    assert not breaker.open
    breaker.failed()
    assert breaker.open
    assert not breaker.allow()


def test_old_outcomes_leave_the_window() -> None:
    clock = Clock()
    breaker = Breaker(POLICY, clock)
    for _ in range(3):
        breaker.failed()
    clock.now += POLICY.window_s + 1
    breaker.failed()
    assert not breaker.open


def test_a_single_probe_decides_after_the_open_time() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += POLICY.open_s
    assert breaker.allow()
    assert not breaker.allow(), "one probe at a time"
    breaker.failed(probe=True)
    assert not breaker.allow()
    clock.now += POLICY.open_s
    assert breaker.allow()
    breaker.succeeded(probe=True)
    assert breaker.allow()
    assert breaker.allow()


def test_an_abandoned_probe_allows_the_next_one() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += POLICY.open_s
    assert breaker.allow()
    breaker.abandon()
    assert breaker.allow()


async def test_a_bulkhead_limits_running_and_waiting_calls() -> None:
    bulkhead = Bulkhead(concurrency=1, waiting=1)
    entered = asyncio.Event()

    async def second() -> None:
        await bulkhead.acquire()
        entered.set()

    await bulkhead.acquire()
    async with background(second()) as task:
        await asyncio.sleep(0)
        assert (bulkhead.busy, bulkhead.waiting) == (1, 1)
        with pytest.raises(BulkheadFull):
            await bulkhead.acquire()
        assert not entered.is_set()
        bulkhead.release()
        await task
    assert (bulkhead.busy, bulkhead.waiting) == (1, 0)
    bulkhead.release()
    assert bulkhead.busy == 0


async def test_a_slot_of_a_cancelled_call_is_passed_to_the_next() -> None:
    bulkhead = Bulkhead(concurrency=1, waiting=3)
    assert bulkhead.try_acquire()
    async with (
        background(bulkhead.acquire()) as given,
        background(bulkhead.acquire()) as left,
        background(bulkhead.acquire()) as last,
    ):
        await asyncio.sleep(0)
        assert (bulkhead.busy, bulkhead.waiting) == (1, 3)
        assert not bulkhead.try_acquire(), "others wait for it"
        left.cancel()
        bulkhead.release()
        given.cancel()
        await last
        assert given.cancelled()
        assert left.cancelled()
        assert (bulkhead.busy, bulkhead.waiting) == (1, 0)
    bulkhead.release()
    assert bulkhead.busy == 0
    assert bulkhead.try_acquire()


async def test_try_admit_takes_neither_a_probe_nor_a_slot_of_a_full_bulkhead() -> None:
    clock = Clock()
    gate = Gate("a", GatePolicy(concurrency=1, breaker=POLICY), clock)
    admission = gate.try_admit()
    assert admission is not None
    assert gate.try_admit() is None, "its bulkhead is full"
    admission.release()
    await fail(gate, times=4)
    clock.now += POLICY.open_s
    assert gate.try_admit() is None, "the call would be a probe"
    (await gate.admit("acme")).release()
    (await gate.admit("acme")).release()  # An abandoned probe frees its slot.


async def test_calls_that_are_refused_do_not_delay_the_probe() -> None:
    clock = Clock()
    gate = Gate("a", GatePolicy(breaker=POLICY), clock)
    late = await gate.admit("acme")
    await fail(gate, times=4)
    for _ in range(4):
        clock.now += POLICY.open_s / 5
        with pytest.raises(Refused, match="is skipped for now"):
            await gate.call("acme", never, within_s=1)
    late.failed(FAILURE)  # It began before the breaker opened.
    clock.now += POLICY.open_s / 5
    assert await gate.call("acme", answer, within_s=1) == "answer"
    assert gate.try_admit() is not None


async def test_only_the_probe_decides_while_a_breaker_is_half_open() -> None:
    clock = Clock()
    gate = Gate("a", GatePolicy(breaker=POLICY), clock)
    early, late = await gate.admit("acme"), await gate.admit("acme")
    await fail(gate, times=4)
    clock.now += POLICY.open_s
    probe = await gate.admit("acme")
    early.succeeded(0.1)
    late.failed(FAILURE)
    early.release()
    late.release()
    with pytest.raises(Refused, match="is skipped for now"):
        await gate.admit("acme")
    probe.succeeded(0.1)
    assert gate.try_admit() is not None


async def test_a_probe_that_fails_after_its_first_output_counts_as_one_call() -> None:
    clock = Clock()
    gate = Gate("a", GatePolicy(breaker=POLICY), clock)
    await fail(gate, times=4)
    clock.now += POLICY.open_s
    probe = await gate.admit("acme")
    probe.succeeded(0.1)
    probe.failed(FAILURE)
    probe.release()
    assert gate.try_admit() is not None, "two outcomes are too few for the ratio"


async def test_calls_beyond_the_bulkhead_do_not_count_against_the_account() -> None:
    gate = Gate("a", GatePolicy(concurrency=1, waiting=0, breaker=POLICY), Clock())
    admission = await gate.admit("acme")
    for _ in range(2 * POLICY.min_calls):
        with pytest.raises(Refused, match="too many calls waiting"):
            await gate.call("acme", never, within_s=1)
    admission.release()
    assert gate.try_admit() is not None


async def test_automatic_hedging_waits_for_fifty_samples_and_takes_their_95th_percentile() -> None:
    gate = Gate("a", GatePolicy(), Clock())
    admission = await gate.admit("acme")
    for number in range(49):
        admission.succeeded(number / 100)
    assert gate.hedge_after_s("auto") is None
    for number in range(49, 100):
        admission.succeeded(number / 100)
    assert gate.hedge_after_s("auto") == 0.94
    assert gate.hedge_after_s(0.2) == 0.2
    assert gate.hedge_after_s(None) is None


async def test_the_hedging_budget_is_a_twentieth_of_the_calls_per_minute() -> None:
    clock = Clock()
    gate = Gate("a", GatePolicy(), clock)
    assert gate.take_hedge()
    assert not gate.take_hedge()
    for _ in range(60):
        admission = await gate.admit("acme")
        admission.succeeded(0.1)
        admission.release()
    assert [gate.take_hedge() for _ in range(3)] == [True, True, False]
    clock.now += 61
    assert gate.take_hedge()
    assert not gate.take_hedge()


async def test_a_gate_refuses_calls_and_hedges_while_its_breaker_is_open() -> None:
    gate = Gate("a", GatePolicy(breaker=POLICY), Clock())
    await fail(gate, times=4)
    with pytest.raises(Refused, match="is skipped for now"):
        await gate.admit("acme")
    assert not gate.take_hedge()


async def test_an_invalid_request_does_not_count_against_the_account() -> None:
    gate = Gate("a", GatePolicy(breaker=POLICY), Clock())
    for _ in range(20):
        admission = await gate.admit("acme")
        admission.failed(Refused("acme", "answered 400", vendor_status=400))
        admission.release()
    await gate.admit("acme")
