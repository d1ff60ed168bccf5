"""While Valkey is unavailable, each process counts half of each rate by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.configs.kinds.limits import Rate
from storage.limits import LocalLimiter


def test_the_local_count_does_not_refuse_the_next_call_of_a_rate_that_is_raised():
    now = 0.0
    limiter = LocalLimiter(clock=lambda: now)
    assert limiter.wait_s(Rate(count=1, per_s=3600), "k") == 0
    assert limiter.wait_s(Rate(count=1, per_s=3600), "k") == pytest.approx(7200)
    assert limiter.wait_s(Rate(count=2, per_s=2), "k") == 0
    assert limiter.wait_s(Rate(count=2, per_s=2), "k") == pytest.approx(2)
    now = 2.0
    assert limiter.wait_s(Rate(count=2, per_s=2), "k") == 0


@given(
    st.integers(1, 50),
    st.floats(0.1, 100),
    st.lists(st.floats(0, 10), min_size=1, max_size=200),
)
def test_the_local_count_never_exceeds_half_the_rate(count, per_s, pauses):
    now = 0.0
    limiter = LocalLimiter(clock=lambda: now)
    times = []
    for pause in pauses:
        now += pause
        wait_s = limiter.wait_s(Rate(count=count, per_s=per_s), "k")
        if wait_s == 0:
            times.append(now)
        else:
            assert 0 < wait_s <= 2 * per_s / count * 1.001
    burst = max(1, count // 2)
    for first, last in zip(times, times[burst:], strict=False):
        assert last - first >= 2 * per_s / count - 1e-3


def test_the_local_count_keeps_the_most_recent_callers():
    limiter = LocalLimiter(clock=lambda: 0.0, counters=3)
    rate = Rate(count=1, per_s=60)
    for key in ("a", "b", "c", "a", "d"):
        limiter.wait_s(rate, key)
    assert limiter.wait_s(rate, "a") > 0
    assert limiter.wait_s(rate, "b") == 0
