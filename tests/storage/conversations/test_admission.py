"""The slots of a dead process are ignored. No process is considered dead too early."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.conversations.admission import Admissions, IdempotencyKey, Slot, StreamLocation, open_admissions
from storage.postgres.database import Database, open_database
from storage.processes.heartbeats import Heartbeat
from storage.valkey.client import Valkey
from storage.valkey.opening import open_valkey
from streams.wire.errors import InvalidOperation, RateLimited, StoreError
from streams.wire.ids import new_id
from tests.app.valkey_proxy import valkey_proxy_to
from tests.running.servers import Stores
from tests.waiting import until

VOID_AFTER_S = 2.0
"""Less than in production, because the Valkey of a test has not run for long."""
AGED = "update processes set seen_at = now() - make_interval(secs => $2) where process = $1"


@pytest.fixture
async def valkey(stores: Stores):
    async with open_valkey(stores.redis_url, prefix=f"test-{new_id()}:") as opened:

        async def has_run_long_enough() -> bool:
            return (await opened.client.info("server"))["uptime_in_seconds"] >= VOID_AFTER_S

        await until(has_run_long_enough, every_s=0.1)
        yield opened


@pytest.fixture
async def database(database_url: str):
    async with open_database(database_url) as opened:
        yield opened


Beating = Callable[..., Heartbeat]


@pytest.fixture
def beating(valkey: Valkey, database: Database) -> Beating:
    def make(valkey: Valkey, process: str, **streams: int) -> Heartbeat:
        return Heartbeat(valkey, database, process, lambda: streams, void_after_s=VOID_AFTER_S)

    return make


async def silent_for(valkey: Valkey, process: str, seconds: float, *, database: Database | None = None) -> None:
    """Move the last heartbeat of `process` back, in PostgreSQL too if `database` is given."""
    now, _ = await valkey.client.time()
    await valkey.client.zadd(valkey.key("processes", "seen"), {process: (now - seconds) * 1000})
    if database is not None:
        async with database.connection() as conn:
            await conn.execute(AGED, process, seconds)


async def take(admissions: Admissions, slot: Slot, *, limit: int = 4) -> None:
    assert await admissions.acquire(slot, limit=limit, lifetime_s=600) is None


async def test_conversation_with_the_turn_of_a_dead_process_is_free(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    dying, living = beating(valkey, "dying"), beating(valkey, "living")
    await dying.beat()
    conversation_id = new_id()
    await take(Admissions(valkey, dying), Slot("app", "user", new_id(), conversation_id))
    slot = Slot("app", "user", new_id(), conversation_id)
    await silent_for(valkey, "dying", VOID_AFTER_S - 1.5, database=database)
    with pytest.raises(InvalidOperation):
        await take(Admissions(valkey, living), slot)
    await silent_for(valkey, "dying", VOID_AFTER_S, database=database)
    await take(Admissions(valkey, living), slot)


async def test_streams_of_a_dead_process_are_not_counted(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    dying, living = beating(valkey, "dying"), beating(valkey, "living")
    for _ in range(2):
        await take(Admissions(valkey, dying), Slot("app", "user", new_id()), limit=2)
    await silent_for(valkey, "dying", 0.5)
    with pytest.raises(RateLimited):
        await take(Admissions(valkey, living), Slot("app", "user", new_id()), limit=2)
    await silent_for(valkey, "dying", VOID_AFTER_S, database=database)
    await take(Admissions(valkey, living), Slot("app", "user", new_id()), limit=2)


async def test_process_that_has_ended_normally_is_dead_immediately(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    leaving, living = beating(valkey, "leaving"), beating(valkey, "living")
    await leaving.beat()
    assert await living.dead(["leaving"]) == frozenset()
    await leaving.stop()
    assert await living.dead(["leaving", "living", ""]) == {"leaving"}


async def test_no_process_is_dead_after_a_recent_failure_of_the_own_heartbeat(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    async with open_valkey("redis://127.0.0.1:1", prefix="x:") as unavailable:
        cut_off = beating(unavailable, "cut off")
        with pytest.raises(StoreError):
            await cut_off.dead(["never heard of"])
        assert not await cut_off.try_beat()
        assert await cut_off.dead(["never heard of"]) == frozenset()


async def test_process_that_is_missing_in_valkey_is_alive_if_postgresql_has_its_heartbeat(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    other, observer = beating(valkey, "other"), beating(valkey, "observer")
    await other.beat()
    await valkey.client.delete(valkey.key("processes", "seen"), valkey.key("processes", "reports"))
    assert await observer.dead(["other"]) == frozenset()
    await silent_for(valkey, "other", 3600)
    assert await observer.dead(["other"]) == frozenset()
    await silent_for(valkey, "other", VOID_AFTER_S, database=database)
    assert await observer.dead(["other"]) == {"other"}


async def test_process_is_alive_if_only_valkey_has_its_heartbeat(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    other, observer = beating(valkey, "other"), beating(valkey, "observer")
    await other.beat()
    async with database.connection() as conn:
        await conn.execute(AGED, "other", 3600)
    assert await observer.dead(["other"]) == frozenset()


async def test_no_process_is_dead_while_postgresql_is_unavailable(valkey: Valkey, database_url: str) -> None:
    async with open_database(database_url) as lost:
        observer = Heartbeat(valkey, lost, "observer", dict, void_after_s=VOID_AFTER_S)
        assert await observer.dead(["never heard of"]) == {"never heard of"}
    assert await observer.dead(["never heard of"]) == frozenset()


async def test_rows_of_processes_without_a_heartbeat_for_an_hour_are_deleted(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    for process in ("long ago", "lately"):
        await beating(valkey, process).beat()
    async with database.connection() as conn:
        await conn.execute(AGED, "long ago", 3601)
        await beating(valkey, "here").beat()
        assert [row[0] for row in await conn.fetch("select process from processes order by process")] == [
            "here",
            "lately",
        ]


@pytest.mark.one_valkey
async def test_keys_of_running_streams_are_set_again_after_valkey_lost_them(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    heartbeat = beating(valkey, "process")
    kept = Slot("app", "user", new_id(), new_id(), IdempotencyKey("key", "fingerprint"))
    over = Slot("app", "user", new_id(), new_id())
    await heartbeat.beat()
    async with open_admissions(valkey, heartbeat) as admissions:
        for slot in (kept, over):
            await take(admissions, slot)
        await admissions.release(over, readable_s=0)
        names = [
            name async for name in valkey.client.scan_iter(f"{valkey.key('').partition('{')[0]}*", count=10_000)
        ]
        before = {name: await valkey.client.pttl(name) for name in names if b"processes" not in name}
        assert len(before) == 4
        await valkey.client.delete(*names)
        await heartbeat.beat()
        await until(lambda: admissions.turn_is_running("app", "user", kept.conversation_id or ""))
        await until(lambda: valkey.client.exists(*[name for name in before if b"asked" in name]))
        for name, ttl_ms in before.items():
            assert ttl_ms - 5_000 < await valkey.client.pttl(name) <= ttl_ms + 100, name
        assert await admissions.find("app", "user", kept.stream_id) == StreamLocation(
            kept.stream_id, "process", kept.conversation_id
        )
        again = kept._replace(stream_id=new_id())
        found = await admissions.acquire(again, limit=4, lifetime_s=600)
        assert found is not None
        assert found.stream_id == kept.stream_id
        assert not await admissions.turn_is_running("app", "user", over.conversation_id or "")
        with pytest.raises(RateLimited):
            await take(admissions, Slot("app", "user", new_id()), limit=1)


async def test_streams_elsewhere_are_the_sum_of_what_other_processes_report(
    valkey: Valkey, database: Database, beating: Beating
) -> None:
    one, two, three = beating(valkey, "one", app=3), beating(valkey, "two", app=4, b=1), beating(valkey, "three")
    for heartbeat in (one, two, three):
        await heartbeat.beat()
    assert three.elsewhere == {"app": 7, "b": 1}
    await one.beat()
    assert one.elsewhere == {"app": 4, "b": 1}
    await silent_for(valkey, "two", VOID_AFTER_S + 1)
    await one.beat()
    assert one.elsewhere == {}


async def test_all_streams_are_registered_soon_although_each_reply_of_valkey_takes_long(
    stores: Stores, valkey: Valkey, beating: Beating, tmp_path: Path
) -> None:
    prefix = valkey.key("").partition("{")[0]
    async with (
        valkey_proxy_to(stores.redis_url, tmp_path / "v.sock") as proxy,
        open_valkey(proxy.url, prefix=prefix) as slow,
    ):
        admissions = Admissions(slow, beating(slow, "process"))
        slots = [Slot("app", f"user-{n}", new_id(), new_id()) for n in range(300)]
        for slot in slots:
            await take(admissions, slot)
        await valkey.client.delete(*[name async for name in valkey.client.scan_iter(f"{prefix}*", count=10_000)])
        proxy.delay_s = 0.05
        async with asyncio.timeout(5):  # One after the other, they take 15 s.
            assert await admissions.restore()
        proxy.delay_s = 0
        for slot in slots:
            assert await admissions.find(slot.app_id, slot.user_id, slot.stream_id) is not None
