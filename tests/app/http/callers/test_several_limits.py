"""A call is counted against several rates at once."""

from contextlib import AsyncExitStack

import pytest

from app.services import Services
from storage.configs.kinds.limits import Rate
from storage.limits import Bucket, RateLimiter
from storage.valkey.opening import open_valkey
from tests.running.servers import Server


@pytest.fixture
def services(shared_server: Server) -> Services:
    return shared_server.services


async def counted(limiter: RateLimiter, *buckets: Bucket, calls=1) -> list[tuple[bool, int]]:
    """Count a call in all of `buckets`. Return for each whether it refused the call, and what is left of it."""
    counts = await limiter.count_all(buckets, app_id="default", tag="t", calls=calls)
    return [(count.wait_s > 0, count.remaining) for count in counts]


@pytest.mark.parametrize("local", [False, True], ids=["valkey", "local"])
async def test_a_call_counts_in_all_its_buckets_or_in_none_and_can_be_taken_back(services, tmp_path, local):
    wide, narrow = (Bucket(name, Rate(count=count, per_s=36_000), "u") for name, count in (("a", 12), ("b", 4)))
    async with AsyncExitStack() as stack:
        limiter = services.limiter
        if local:  # At half the rates.
            url = f"unix://{tmp_path}/no-valkey"
            limiter = RateLimiter(await stack.enter_async_context(open_valkey(url)))
        allowed = 2 if local else 4
        for call in range(1, allowed + 1):
            left = (wide.rate.count - call * 4 // allowed, narrow.rate.count - call * 4 // allowed)
            assert await counted(limiter, wide, narrow) == [(False, left[0]), (False, left[1])]
        assert await counted(limiter, wide, narrow) == [(False, 8), (True, 0)]
        back = 4 // allowed
        assert await counted(limiter, wide, narrow, calls=-1) == [(False, 8 + back), (False, back)]
        assert await counted(limiter, wide, narrow) == [(False, 8), (False, 0)]
        for _ in range(20):
            await counted(limiter, narrow, calls=-1)
        assert (await counted(limiter, narrow))[0] == (False, 4 - back)
