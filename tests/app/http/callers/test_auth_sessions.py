"""Lifetimes of sessions, their copies in Valkey, and their revocation."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from app.services import Services
from storage.accounts import logins, sessions
from storage.accounts.ended_sessions import SessionKey
from storage.accounts.identities import Identity
from storage.accounts.logins import NewSession, trim_sessions
from storage.accounts.session_cache import Session, SessionCache
from storage.accounts.sessions import current_session
from streams.wire.codec import from_rfc3339
from streams.wire.ids import new_id
from tests.calendar.hard_instants import walk
from tests.running.servers import Server
from tests.waiting import until

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SLIDING_S = 30 * 86_400
ABSOLUTE = 180 * DAY


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


@pytest.fixture
async def digest(services: Services) -> str:
    """A session that began at START."""
    return await begun(services, START)


async def begun(services: Services, at: datetime) -> str:
    """Return the digest of a session that began at `at`."""
    identity = Identity("default", "device", new_id())
    value = new_id()  # The end of a session is announced to caches a moment after the test that has ended it.
    async with services.database.transaction() as conn:
        session = NewSession(value, at + ABSOLUTE)
        await logins.sign_up(conn, identity, session=session, uid=new_id(), now=at, proven=False)
    return value


async def seen(services: Services, digest: str, now: datetime) -> Session | None:
    return await current_session(
        services.database,
        services.sessions,
        app_id="default",
        digest=digest,
        now=now,
        sliding_s=SLIDING_S,
    )


async def row(services: Services, digest: str) -> Session:
    async with services.database.connection() as conn:
        session = await sessions.find(conn, "default", digest=digest)
    assert session is not None
    return session


def copy_key(services: Services, digest: str) -> str:
    return services.valkey.key(f"default:{digest}", "session")


async def forget_copy(services: Services, digest: str) -> None:
    await services.valkey.client.delete(copy_key(services, digest))
    services.sessions.drop_recent([SessionKey("default", digest)])


async def end(services: Services, digest: str) -> None:
    uid = (await row(services, digest)).uid
    async with services.database.transaction() as conn:
        await sessions.end(conn, "default", uid, cache=services.sessions, now=START, digest=digest)


async def test_a_session_that_is_not_used_ends_after_its_sliding_lifetime(services, digest):
    assert await seen(services, digest, START + 30 * DAY) is None
    assert await seen(services, digest, START + 30 * DAY - timedelta(seconds=1)) is not None


DAYS_30_LATER = {
    "2027-01-28T12:00:00Z": "2027-02-27T12:00:00Z",
    "2027-01-29T12:00:00Z": "2027-02-28T12:00:00Z",
    "2027-01-30T12:00:00Z": "2027-03-01T12:00:00Z",
    "2027-01-31T12:00:00Z": "2027-03-02T12:00:00Z",
    "2027-02-28T12:00:00Z": "2027-03-30T12:00:00Z",
    "2027-03-14T07:00:00Z": "2027-04-13T07:00:00Z",
    "2027-03-28T01:00:00Z": "2027-04-27T01:00:00Z",
    "2027-03-31T12:00:00Z": "2027-04-30T12:00:00Z",
    "2027-10-31T01:00:00Z": "2027-11-30T01:00:00Z",
    "2027-11-07T06:00:00Z": "2027-12-07T06:00:00Z",
    "2027-12-31T23:59:59Z": "2028-01-30T23:59:59Z",
    "2028-01-01T00:00:00Z": "2028-01-31T00:00:00Z",
    "2028-02-29T12:00:00Z": "2028-03-30T12:00:00Z",
}


async def test_a_session_that_began_at_a_hard_instant_ends_after_its_sliding_lifetime(services):
    for instant, expected in walk(DAYS_30_LATER):
        digest, ends = await begun(services, instant), from_rfc3339(expected)
        assert await seen(services, digest, ends) is None
        assert await seen(services, digest, ends - timedelta(seconds=1)) is not None


async def test_a_session_in_use_is_extended_until_its_absolute_end(services, digest):
    for days in range(25, 180, 25):
        assert await seen(services, digest, START + days * DAY) is not None
        await forget_copy(services, digest)
    assert await seen(services, digest, START + 180 * DAY - timedelta(seconds=1)) is not None
    assert await seen(services, digest, START + 180 * DAY) is None


async def test_a_cached_session_expires_like_the_stored_one(services, digest):
    first = await seen(services, digest, START)
    assert await services.sessions.get("default", digest) == first
    assert await seen(services, digest, START + 30 * DAY - timedelta(seconds=1)) is not None
    assert await seen(services, digest, START + 30 * DAY) is None


async def test_a_session_is_touched_at_most_hourly(services, digest):
    almost = START + timedelta(minutes=59)
    await seen(services, digest, almost)
    assert (await row(services, digest)).last_seen_s == START.timestamp()
    await forget_copy(services, digest)
    later = START + timedelta(minutes=60)
    await seen(services, digest, later)
    assert (await row(services, digest)).last_seen_s == later.timestamp()


async def test_a_cached_session_expires_before_its_row_must_be_touched(services, digest):
    await seen(services, digest, START + timedelta(minutes=59, seconds=50))
    assert 0 < await services.valkey.client.pttl(copy_key(services, digest)) <= 10_000


async def test_a_reader_that_began_before_the_revocation_caches_nothing(services, digest):
    slow = await row(services, digest)
    async with services.database.transaction() as conn:
        await sessions.end(conn, "default", slow.uid, cache=services.sessions, now=START, digest=digest)
    await services.sessions.put(slow, for_s=30)
    assert await services.sessions.get("default", digest) is None
    assert await seen(services, digest, START) is None


async def test_a_session_that_was_just_read_is_not_read_again(services, digest):
    first = await seen(services, digest, START)
    assert await services.sessions.get("default", digest) == first
    await services.valkey.client.delete(copy_key(services, digest))
    assert await services.sessions.get("default", digest) == first


async def test_a_session_that_was_just_read_is_refused_once_it_has_ended(services, digest):
    for _ in range(2):
        assert await seen(services, digest, START) is not None
    await end(services, digest)
    assert await seen(services, digest, START) is None


async def test_a_session_that_ends_while_it_is_read_is_refused_afterwards(services, digest):
    await seen(services, digest, START)
    await asyncio.gather(services.sessions.get("default", digest), services.sessions.forget("default", [digest]))
    assert await services.sessions.get("default", digest) is None


async def test_a_process_that_hears_of_no_end_refuses_the_session_within_a_second(services, digest):
    deaf = SessionCache(services.valkey)
    first = await seen(services, digest, START)
    assert await deaf.get("default", digest) == first
    await end(services, digest)

    async def forgotten() -> bool:
        return await deaf.get("default", digest) is None

    await until(forgotten, within_s=1)


async def test_an_end_that_only_postgresql_announces_is_not_hidden_by_what_was_just_read(services, digest):
    await seen(services, digest, START)
    assert await services.sessions.get("default", digest) is not None
    services.sessions.forget_later([SessionKey("default", digest)])
    assert await services.sessions.get("default", digest) is None


async def test_the_newest_sessions_are_kept_and_the_rest_end(services, digest):
    owner = await row(services, digest)
    async with services.database.transaction() as conn:
        social_id = await conn.fetchval("select social_id from identities where uid = $1", owner.uid)
        identity = Identity("default", "device", social_id)
        for minute in range(1, 6):
            now = START + timedelta(minutes=minute)
            await logins.log_in(
                conn, identity, session=NewSession(f"n{minute}", now + ABSOLUTE), now=now, cuid=None
            )
    async with services.database.connection() as conn:
        ended = await trim_sessions(conn, "default", owner.uid, cache=services.sessions, now=START, keep_newest=4)
    assert ended == 2
    assert await seen(services, digest, START) is None
    assert await seen(services, "n1", START) is None
    assert await seen(services, "n2", START) is not None


async def test_sessions_that_ended_long_ago_are_deleted(services, digest):
    owner = await row(services, digest)
    async with services.database.transaction() as conn:
        await sessions.end(conn, "default", owner.uid, cache=services.sessions, now=START)
    async with services.database.connection() as conn:
        for days, left in ((7, 1), (8, 0)):
            now = START + days * DAY
            await trim_sessions(conn, "default", owner.uid, cache=services.sessions, now=now, keep_newest=9)
            assert await conn.fetchval("select count(*) from sessions") == left


async def test_a_session_of_another_app_is_not_accepted(services, digest):
    found = await current_session(
        services.database,
        services.sessions,
        app_id="other",
        digest=digest,
        now=START,
        sliding_s=SLIDING_S,
    )
    assert found is None


MANY_ROWS = """
set local session_replication_role = replica;  -- The rows need no users.
insert into sessions (app_id, digest, uid, platform, social_id, create_time, last_seen, expire_time)
    select 'a', 'digest ' || n, 'uid ' || n, '', '', now(), now(), now() from generate_series(1, 1000) n;
insert into identities (app_id, platform, social_id, uid, create_time)
    select 'a', 'device', 'id ' || n, 'uid ' || n, now() from generate_series(1, 1000) n;
analyze sessions, identities;
"""
NEWEST = """
select digest from sessions where app_id = 'a' and uid = 'b' and revoke_time is null
order by create_time desc, digest offset 10
"""


async def test_hot_queries_use_their_indexes(services):
    async with services.database.transaction() as conn:
        await conn.execute("set local enable_seqscan = off")
        await conn.execute(MANY_ROWS)
        for query, index in (
            ("select 1 from sessions where app_id = 'a' and digest = 'b'", "sessions_pkey"),
            (NEWEST, "sessions_of_user"),
            (
                "select 1 from identities where app_id = 'a' and platform = 'b' and social_id = 'c'",
                "identities_pkey",
            ),
            ("select 1 from identities where app_id = 'a' and uid = 'b'", "identities_of_user"),
        ):
            plan = "\n".join(line[0] for line in await conn.fetch(f"explain {query}"))
            assert index in plan, plan


async def test_an_identity_is_found_by_its_key_before_its_table_has_statistics(services):
    async with services.database.transaction() as conn:
        await conn.execute("set local enable_seqscan = off")
        await conn.execute("create temporary table new (like identities including indexes) on commit drop")
        query = "select uid from new where app_id = 'a' and platform = 'b' and social_id = 'c'"
        plan = "\n".join(line[0] for line in await conn.fetch(f"explain {query}"))
        assert "new_pkey" in plan, plan


async def test_many_readers_at_once_see_one_session(services, digest):
    found = await asyncio.gather(*(seen(services, digest, START) for _ in range(30)))
    assert {session.digest for session in found if session} == {digest}
    assert all(found)
