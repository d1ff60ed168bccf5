"""Deletion page by page reads a table once, and finds all rows that were there when it began."""

from functools import partial

from storage.accounts.logins import delete_dead_sessions
from storage.postgres.batches import delete_page_by_page
from tests.calendar.clock import utc_now

_USER = "insert into users (app_id, uid, create_time, last_login) values ('default', 'u', now(), now())"
_SESSIONS = """
insert into sessions (app_id, digest, uid, platform, social_id, create_time, last_seen, expire_time)
select app, 'd' || n, 'u', 'device', 's', now(), now(),
    now() + interval '1 hour' * case when n % 3 = 0 then -24 * 400 else 1 end
from unnest(array['default', 'other']) app, generate_series(1, 900) n where app = 'default' or n < 10
"""


async def test_dead_sessions_of_all_pages_are_deleted_and_no_others(services):
    async with services.database.connection() as conn:
        await conn.execute(_USER + ";" + _USER.replace("'default'", "'other'"))
        await conn.execute(_SESSIONS)
        pages = await conn.fetchval("select pg_relation_size('sessions') / 8192")
    assert pages > 5, "there are several batches"
    delete = partial(delete_dead_sessions, app_id="default", now=utc_now(), sliding_s=3600 * 24)
    assert await delete_page_by_page(services.database, "sessions", delete, size=2) == 300
    assert await delete_page_by_page(services.database, "sessions", delete, size=2) == 0
    async with services.database.connection() as conn:
        left = await conn.fetch("select app_id, count(*) from sessions group by 1 order by 1")
    assert [tuple(row) for row in left] == [("default", 600), ("other", 9)]
