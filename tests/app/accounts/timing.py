"""Comparison of the times of two kinds of request."""

from collections.abc import Awaitable, Callable
from random import sample
from time import perf_counter
from typing import TypeVar

Kind = TypeVar("Kind")


async def times_of(
    kinds: tuple[Kind, Kind], call: Callable[[Kind], Awaitable[object]], *, each: int
) -> tuple[list[float], list[float]]:
    """Make `each` requests of both kinds and return their times in seconds.

    They are in random order, because work that follows a request, such as a job, may delay the next one.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for kind in sample([0, 1] * each, 2 * each):
        began = perf_counter()
        await call(kinds[kind])
        times[kind].append(perf_counter() - began)
    return times


def check_alike(times: tuple[list[float], list[float]]) -> None:
    """Check that both come from one distribution: in a random pair, each is equally likely to be longer.

    If so, the share of pairs in which the first is longer has a normal distribution around a half. The bound
    is 4.5 of its standard deviations, which one run in 150,000 exceeds.
    """
    first, second = times
    longer = sum(one > other for one in first for other in second) / (len(first) * len(second))
    deviation = ((len(first) + len(second) + 1) / (12 * len(first) * len(second))) ** 0.5
    assert abs(longer - 0.5) < 4.5 * deviation, (longer, deviation)
