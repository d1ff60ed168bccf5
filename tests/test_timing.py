"""The comparison of times finds a difference in some of the requests, and no difference where there is none."""

from collections.abc import Callable
from random import Random

import pytest

from tests.timing import check_alike

LEAK_S = 0.004
BASE_S = 0.01
CALM_S, BUSY_S = 0.0003, 0.03
"""The mean delay of a request by other work."""


class Requests:
    """Requests that take a simulated time. `extra_s` returns by how much longer those of `leaking` take."""

    def __init__(self, rng: Random, delay_s: float, extra_s: Callable[[], float] = lambda: 0.0) -> None:
        self.made = 0
        self.now_s = 0.0
        self._rng = rng
        self._delay_s = delay_s
        self._extra_s = extra_s

    async def call(self, kind: str) -> None:
        self.made += 1
        self.now_s += BASE_S + self._rng.expovariate(1 / self._delay_s)
        if kind == "leaking":
            self.now_s += self._extra_s()

    async def check(self, *kinds: str) -> None:
        given = {f"{number} {kind}": kind for number, kind in enumerate(kinds)}
        await check_alike(given, self.call, leak_s=LEAK_S, clock=lambda: self.now_s)


@pytest.fixture(params=range(4))
def rng(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Random:
    """The only source of chance."""
    rng = Random(request.param)  # noqa: S311 - no secret
    monkeypatch.setattr("tests.timing.choices", rng.choices)
    return rng


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("kinds", "share"),
    [
        (("leaking", "a"), 0.5),
        (("leaking", "a", "b", "c", "d"), 0.5),
        (("leaking", "leaking", "a", "b"), 1),
    ],
)
async def test_a_difference_is_found(rng: Random, kinds: tuple[str, ...], share: float, sign: int) -> None:
    requests = Requests(rng, CALM_S, lambda: sign * LEAK_S if rng.random() < share else 0)
    with pytest.raises(AssertionError, match="leaking"):
        await requests.check(*kinds)


@pytest.mark.parametrize("kinds", [("a", "b"), ("a", "b", "c", "d", "e")])
@pytest.mark.parametrize("delay_s", [CALM_S, BUSY_S])
async def test_requests_without_a_difference_pass(rng: Random, kinds: tuple[str, ...], delay_s: float) -> None:
    await Requests(rng, delay_s).check(*kinds)


async def test_a_calm_machine_needs_few_requests(rng: Random) -> None:
    requests = Requests(rng, CALM_S)
    await requests.check("a", "b")
    assert requests.made < 100


async def test_a_difference_that_nobody_can_measure_passes(rng: Random) -> None:
    await Requests(rng, CALM_S, lambda: LEAK_S / 4).check("leaking", "a")
