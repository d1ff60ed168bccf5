"""What a client sends costs about the same time per byte, whatever it contains."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from streams.body import FirstObject
from streams.decoders import Base64Decoder
from streams.wire.codec import loads_request
from streams.wire.errors import InvalidParameter

HOSTILE = [b"[],", b"{},", b"[" * 30 + b"]" * 30 + b",", b'"",', rb'"\\",', rb'"\\u0000",', rb'"\"[",']
HARMLESS = b'"a":1234567,'


def cpu_s(run: Callable[[], object]) -> float:
    """Return the least CPU time of several runs."""
    times = []
    for _ in range(9):
        before = time.thread_time()
        with suppress(InvalidParameter):
            run()
        times.append(time.thread_time() - before)
    return min(times)


def body(unit: bytes, size: int) -> bytes:
    """Return an object of about `size` bytes that mostly consists of `unit`."""
    unit = unit if unit == HARMLESS else b'"a":[%b1],' % (unit * 1000)
    return b"{%b}" % (unit * (size // len(unit))).rstrip(b",")


@pytest.mark.parametrize("unit", HOSTILE)
def test_json_is_decoded_in_similar_time(unit: bytes) -> None:
    hostile, harmless = (body(content, 128 * 1024) for content in (unit, HARMLESS))

    assert cpu_s(lambda: loads_request(hostile)) < 10 * cpu_s(lambda: loads_request(harmless))


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_end_of_parameters_is_found_in_similar_time(unit: bytes) -> None:
    hostile, harmless = (body(content, 60 * 1024) for content in (unit, HARMLESS))

    assert cpu_s(lambda: FirstObject(64 * 1024).feed(hostile)) < 12 * cpu_s(lambda: loads_request(harmless))


@pytest.mark.parametrize("unit", [b"AAA=", b"AA==", b"AA=AAAA", b"AAAAAAA="])
def test_padding_everywhere_is_decoded_in_similar_time(unit: bytes) -> None:
    def decode(unit: bytes) -> None:
        Base64Decoder().feed(unit * (32 * 1024 // len(unit)))

    assert cpu_s(lambda: decode(unit)) < 45 * cpu_s(lambda: decode(b"AAAA"))
