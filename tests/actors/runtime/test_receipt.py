"""What a stream reports at its end: the times of its stages, the server's overhead, and a digest of its output."""

import asyncio
import hashlib
import time

from actors.runtime.receipt import Receipt

ROUNDED_MS = 2
"""By how much a sleep may be shorter than requested, and a time rounded."""


def since_ms(begun_s: float) -> float:
    """Return the time since `begun_s`. On a busy machine, it is any time longer than the sleeps in between."""
    return (time.monotonic() - begun_s) * 1000 + ROUNDED_MS


async def test_stages_are_milliseconds_from_the_arrival_and_the_first_time_counts():
    begun_s = time.monotonic() - 2
    receipt = Receipt(begun_s)
    receipt.mark("admission")
    admitted_ms = since_ms(begun_s)
    await asyncio.sleep(0.06)
    receipt.mark("admission")
    receipt.mark("input")

    times = receipt.latency_ms

    assert list(times) == ["admission", "input"]
    assert 2000 <= times["admission"] <= admitted_ms
    assert 2058 <= times["input"] <= since_ms(begun_s)


def test_stage_that_was_not_reached_has_no_key():
    assert Receipt(time.monotonic()).latency_ms == {}


async def test_overhead_excludes_waiting():
    begun_s = time.monotonic() - 0.1
    receipt = Receipt(begun_s)
    with receipt.waiting():
        await asyncio.sleep(0.05)
    receipt.first_output()

    assert 98 <= receipt.latency_ms["overhead"] <= since_ms(begun_s) - 50 + ROUNDED_MS


async def test_overlapping_waits_are_counted_once():
    begun_s = time.monotonic() - 0.5
    receipt = Receipt(begun_s)

    async def wait(begin_s: float, end_s: float) -> None:
        await asyncio.sleep(begin_s)
        with receipt.waiting():
            await asyncio.sleep(end_s - begin_s)

    await asyncio.gather(wait(0, 0.06), wait(0.02, 0.04), wait(0.03, 0.09))
    receipt.first_output()

    assert 495 <= receipt.latency_ms["overhead"] <= since_ms(begun_s) - 90 + ROUNDED_MS


async def test_a_wait_at_the_first_output_counts_until_then():
    begun_s = time.monotonic() - 0.2
    receipt = Receipt(begun_s)
    with receipt.waiting():
        await asyncio.sleep(0.05)
        receipt.first_output()
        until_output_ms = since_ms(begun_s)
        await asyncio.sleep(0.01)
    receipt.first_output()

    assert 195 <= receipt.latency_ms["overhead"] <= until_output_ms - 50 + ROUNDED_MS


async def test_failed_waits_are_counted():
    begun_s = time.monotonic() - 0.2
    receipt = Receipt(begun_s)
    try:
        with receipt.waiting():
            await asyncio.sleep(0.05)
            raise LookupError
    except LookupError:
        receipt.first_output()

    assert 195 <= receipt.latency_ms["overhead"] <= since_ms(begun_s) - 50 + ROUNDED_MS


def test_overhead_is_fixed_by_the_first_output_and_never_below_zero():
    receipt = Receipt(time.monotonic() + 5)
    receipt.first_output()

    assert receipt.latency_ms == {"overhead": 0}


def test_the_digest_covers_the_output_in_order():
    receipt = Receipt(0)
    assert receipt.digest == {"chars": 0, "sha256": hashlib.sha256().hexdigest()}

    receipt.add_output("Grü")
    receipt.add_output(b"\0\1audio")
    receipt.add_output("😀")

    raw = "Grü".encode() + b"\0\1audio" + "😀".encode()
    assert receipt.digest == {"chars": 4, "sha256": hashlib.sha256(raw).hexdigest()}
