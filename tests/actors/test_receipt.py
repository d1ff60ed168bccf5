"""What a stream reports at its end: the times of its stages, the server's overhead, and a digest of its output."""

import asyncio
import hashlib
import time

from actors.receipt import Receipt

SLACK_MS = 40
"""The tolerance for a busy machine, in ms."""


async def test_stages_are_milliseconds_from_the_arrival_and_the_first_time_counts():
    receipt = Receipt(time.monotonic() - 2)
    receipt.mark("admission")
    await asyncio.sleep(0.06)
    receipt.mark("admission")
    receipt.mark("input")

    times = receipt.latency_ms

    assert list(times) == ["admission", "input"]
    assert 2000 <= times["admission"] < 2000 + SLACK_MS
    assert 2058 <= times["input"] < 2060 + SLACK_MS


def test_stage_that_was_not_reached_has_no_key():
    assert Receipt(time.monotonic()).latency_ms == {}


async def test_overhead_excludes_waiting():
    receipt = Receipt(time.monotonic() - 0.1)
    with receipt.waiting():
        await asyncio.sleep(0.05)
    receipt.first_output()

    assert 98 <= receipt.latency_ms["overhead"] < 100 + SLACK_MS


async def test_overlapping_waits_are_counted_once():
    receipt = Receipt(time.monotonic() - 0.5)

    async def wait(begin_s: float, end_s: float) -> None:
        await asyncio.sleep(begin_s)
        with receipt.waiting():
            await asyncio.sleep(end_s - begin_s)

    await asyncio.gather(wait(0, 0.06), wait(0.02, 0.04), wait(0.03, 0.09))
    receipt.first_output()

    assert 495 <= receipt.latency_ms["overhead"] < 500 + SLACK_MS


async def test_a_wait_at_the_first_output_counts_until_then():
    receipt = Receipt(time.monotonic() - 0.2)
    with receipt.waiting():
        await asyncio.sleep(0.05)
        receipt.first_output()
        await asyncio.sleep(0.01)
    receipt.first_output()

    assert 195 <= receipt.latency_ms["overhead"] < 200 + SLACK_MS


async def test_failed_waits_are_counted():
    receipt = Receipt(time.monotonic() - 0.2)
    try:
        with receipt.waiting():
            await asyncio.sleep(0.05)
            raise LookupError
    except LookupError:
        receipt.first_output()

    assert 195 <= receipt.latency_ms["overhead"] < 200 + SLACK_MS


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
