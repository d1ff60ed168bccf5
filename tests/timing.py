"""Comparison of the times of two kinds of request."""

from collections.abc import Awaitable, Callable
from math import comb
from random import sample
from time import monotonic, perf_counter
from typing import TypeVar

Kind = TypeVar("Kind")
_ROUND = 6
_SEEN = 5
"""How many requests of each kind must be nearly as fast as the fastest one."""
_CHANCE = 1e-6
"""The probability of a failure if there is no difference."""
_WITHIN_S = 6
"""No further requests are made after this time, because a machine that is so busy hides a difference anyway."""


async def check_alike(
    kinds: tuple[Kind, Kind], call: Callable[[Kind], Awaitable[object]], *, leak_s: float, most: int = 42
) -> None:
    """Check that two kinds of request take the same time, so that nobody can learn from it which one was made.

    A busy machine only makes requests slower, so the fastest ones show what they cost. Requests of both kinds are
    made in random order, because work that follows one, such as a job, may delay the next. If several of each kind
    are at most half of `leak_s` slower than the fastest of all, no kind takes `leak_s` longer, and this returns.
    Otherwise, after `most` requests of each kind, it fails if too many of the fastest are of one kind. How probable
    that is by chance does not depend on the machine. On a machine that delays half of the requests by more than
    `leak_s`, such a difference cannot be found.
    """
    times: tuple[list[float], list[float]] = ([], [])
    until_s = monotonic() + _WITHIN_S
    while len(times[0]) < most and monotonic() < until_s:
        for kind in sample([0, 1] * _ROUND, 2 * _ROUND):
            began = perf_counter()
            await call(kinds[kind])
            times[kind].append(perf_counter() - began)
        limit_s = min(map(min, times)) + leak_s / 2
        if all(sum(each < limit_s for each in found) >= _SEEN for found in times):
            return
    slower = max(map(min, times))
    lead = sum(each < slower for found in times for each in found)
    count = len(times[0])
    chance = 2 * comb(2 * count - lead, count) / comb(2 * count, count)
    assert chance > _CHANCE, (lead, [sorted(found)[:_SEEN] for found in times])
