"""Comparison of the times of several kinds of request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from math import comb
from random import choices
from statistics import quantiles
from time import perf_counter
from typing import TypeVar

Kind = TypeVar("Kind")
Times = Mapping[str, Sequence[float]]
_ROUND = 4
_LEAST, _MOST = 24, 100
"""How many requests of each kind are compared."""
_WITHIN_S = 4
"""No further requests are made after this time, because a machine that is so busy hides a difference anyway."""
_DECILES = 8
"""Which deciles must be alike. The last one is left out, because a few requests are always delayed."""
_THRESHOLDS = 50
_CHANCE = 1e-6
"""The probability of a failure if there is no difference."""


async def check_alike(
    kinds: Mapping[str, Kind],
    call: Callable[[Kind], Awaitable[object]],
    *,
    leak_s: float,
    clock: Callable[[], float] = perf_counter,
) -> None:
    """Check that several kinds of request take the same time, so that nobody can learn from it which one was made.

    Returns as soon as the times of each kind are distributed like those of the others: the deciles, except for the
    last, differ by at most half of `leak_s`. So a difference of `leak_s` is found even if it concerns only half of
    the requests. On a busy machine the deciles may differ by chance. Then further requests are made, and in the end
    it fails only if a kind takes longer or shorter than the others by more than half of `leak_s`, and if that is no
    chance. On a machine that delays most requests by more than `leak_s`, such a difference cannot be found.

    The kind of each request is random, because work that follows a request, such as a job, may delay the next one.
    """
    for kind in kinds.values():
        await call(kind)  # The first request is slower: it fills caches.
    times: dict[str, list[float]] = {name: [] for name in kinds}
    until_s = clock() + _WITHIN_S
    while min(map(len, times.values())) < _MOST and clock() < until_s:
        for name in choices([*kinds], k=_ROUND * len(kinds)):  # noqa: S311 - no secret
            began = clock()
            await call(kinds[name])
            times[name].append(clock() - began)
        if min(map(len, times.values())) >= _LEAST and _are_alike(times, within_s=leak_s / 2):
            return
    different = _different(times, by_s=leak_s / 2)
    assert not different, (different, {name: quantiles(own, n=10) for name, own in times.items()})


def _others(times: Times, name: str) -> list[float]:
    return [*chain.from_iterable(found for other, found in times.items() if other != name)]


def _are_alike(times: Times, *, within_s: float) -> bool:
    """Return whether the deciles of each kind are close to those of the others."""
    for name, own in times.items():
        deciles = zip(quantiles(own, n=10), quantiles(_others(times, name), n=10), strict=True)
        if any(abs(one - other) > within_s for one, other in [*deciles][:_DECILES]):
            return False
    return True


def _different(times: Times, *, by_s: float) -> list[str]:
    """Return the kinds whose requests take longer or shorter than others, by more than `by_s` and not by chance."""
    chance = _CHANCE / (2 * len(times))
    found = []
    for name, own in times.items():
        others = _others(times, name)
        longer = _chance([time - by_s for time in own], others)
        shorter = _chance([-time - by_s for time in own], [-time for time in others])
        if min(longer, shorter) < chance:
            found.append(name)
    return found


def _chance(own: Sequence[float], others: Sequence[float]) -> float:
    """Return at most how probable it is that so many of `own` are among the largest, if there is no difference.

    This does not depend on the distribution of the times: every order of the requests is as probable as any other.
    """
    ranked = sorted([(time, True) for time in own] + [(time, False) for time in others], reverse=True)
    least = 1.0
    for threshold in range(1, _THRESHOLDS):
        largest = len(ranked) * threshold // _THRESHOLDS
        lead = sum(is_own for _, is_own in ranked[:largest])
        if lead * len(ranked) <= largest * len(own):
            continue  # Not more than its share.
        ways = sum(
            comb(len(own), count) * comb(len(others), largest - count)
            for count in range(lead, min(len(own), largest) + 1)
        )
        least = min(least, ways / comb(len(ranked), largest))
    return min(1.0, least * _THRESHOLDS)
