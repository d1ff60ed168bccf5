"""What a dead process holds is void; nobody is called dead too early."""

import asyncio
from contextlib import suppress

import pytest

from storage.admission import Place, Places
from storage.heartbeats import Heartbeat
from storage.redis import Valkey, open_valkey
from streams.tasks import background
from streams.wire.errors import InvalidOperation, RateLimited, StoreError
from streams.wire.ids import new_id
from tests.servers import Stores

VOID_AFTER_S = 2.0
"""Less than in service, as the Valkey of a test has not run for long."""


@pytest.fixture
async def valkey(stores: Stores):
    async with open_valkey(stores.redis_url, prefix=f"test-{new_id()}:") as opened:
        while (await opened.client.info("server"))["uptime_in_seconds"] < VOID_AFTER_S:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        yield opened


def beating(valkey: Valkey, process: str, **streams: int) -> Heartbeat:
    return Heartbeat(valkey, process, lambda: streams, void_after_s=VOID_AFTER_S)


async def silent_for(valkey: Valkey, process: str, seconds: float) -> None:
    """Let the last sign of life of `process` lie back."""
    now, _ = await valkey.client.time()
    await valkey.client.zadd(valkey.key("processes", "seen"), {process: (now - seconds) * 1000})


async def take(places: Places, place: Place, *, limit: int = 4) -> None:
    assert await places.take(place, limit=limit, lifetime_s=600) is None


async def test_turn_of_a_dead_process_is_free(valkey: Valkey) -> None:
    dying, living = beating(valkey, "dying"), beating(valkey, "living")
    await dying.beat()
    conversation_id = new_id()
    await take(Places(valkey, dying), Place("app", "user", new_id(), conversation_id))
    place = Place("app", "user", new_id(), conversation_id)
    await silent_for(valkey, "dying", VOID_AFTER_S - 1.5)
    with pytest.raises(InvalidOperation):
        await take(Places(valkey, living), place)
    await silent_for(valkey, "dying", VOID_AFTER_S)
    await take(Places(valkey, living), place)


async def test_streams_of_a_dead_process_count_no_more(valkey: Valkey) -> None:
    dying, living = beating(valkey, "dying"), beating(valkey, "living")
    for _ in range(2):
        await take(Places(valkey, dying), Place("app", "user", new_id()), limit=2)
    await silent_for(valkey, "dying", 0.5)
    with pytest.raises(RateLimited):
        await take(Places(valkey, living), Place("app", "user", new_id()), limit=2)
    await silent_for(valkey, "dying", VOID_AFTER_S)
    await take(Places(valkey, living), Place("app", "user", new_id()), limit=2)


async def test_process_that_said_goodbye_is_dead_at_once(valkey: Valkey) -> None:
    leaving, living = beating(valkey, "leaving"), beating(valkey, "living")
    await leaving.beat()
    assert await living.dead(["leaving"]) == frozenset()
    await leaving.stop()
    assert await living.dead(["leaving", "living", ""]) == {"leaving"}


async def test_nobody_is_dead_while_a_beat_of_ours_failed_lately(valkey: Valkey) -> None:
    async with open_valkey("redis://127.0.0.1:1", prefix="x:") as away:
        cut_off = beating(away, "cut off")
        with pytest.raises(StoreError):
            await cut_off.dead(["never heard of"])
        async with background(cut_off.run()), asyncio.timeout(5):
            while True:
                with suppress(StoreError):
                    assert await cut_off.dead(["never heard of"]) == frozenset()
                    return
                await asyncio.sleep(0.01)


async def test_streams_elsewhere_are_the_sum_of_what_others_tell(valkey: Valkey) -> None:
    one, two, three = beating(valkey, "one", app=3), beating(valkey, "two", app=4, b=1), beating(valkey, "three")
    for heartbeat in (one, two, three):
        await heartbeat.beat()
    assert three.elsewhere == {"app": 7, "b": 1}
    await one.beat()
    assert one.elsewhere == {"app": 4, "b": 1}
    await silent_for(valkey, "two", VOID_AFTER_S + 1)
    await one.beat()
    assert one.elsewhere == {}
