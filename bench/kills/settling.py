"""After the traffic: the app's clock is moved and the jobs at fixed times run, until nothing changes any more."""

import asyncio
from datetime import UTC, datetime, timedelta

from aiohttp import ClientError, ClientSession

from bench.kills.testbed import APP, KillsTestbed
from deploy.running import Failed
from storage.postgres.database import Connection, Database
from streams.wire.codec import rfc3339

_STEP = timedelta(minutes=3)
"""Longer than reconciliations wait for webhooks, and for the answers to calls."""
_DAY = timedelta(days=1)
_DAYS = 2
"""Payments are read once a day, which finds the disputes that were not reported."""
_ROUNDS = 40
_POLL_S = 0.5
_ROUND_S = 1200
_STATE = """
select md5(string_agg(part, ' ')) from (
    select count(*)::text as part from asset_entries
    union all select count(*)::text from withdrawal_entries
    union all select string_agg(status, '' order by payment_id) from card_payments
    union all select string_agg(status, '' order by row_id) from card_subscriptions
    union all select string_agg(status, '' order by row_id) from wallet_orders
    union all select string_agg(status, '' order by row_id) from wallet_subscriptions
    union all select string_agg(state, '' order by upgrade_id) from wallet_upgrades
    union all select string_agg(state, '' order by row_id) from wallet_refunds
    union all select string_agg(status, '' order by withdrawal_id) from withdrawals) parts
"""
_UNREAD = """
select (select count(*) from card_payments where checked_at < $1
        and status not in ('succeeded', 'canceled', 'abandoned'))
    + (select count(*) from card_subscriptions where checked_at < $1
        and status not in ('refused', 'abandoned', 'canceled', 'incomplete_expired', 'trialing', 'active'))
"""
"""Counts the rows that the reconciliation has not read since `$1`. It reads them in batches."""
_JOBS = """
select count(*) from procrastinate_jobs where status = 'doing'
    or (status = 'todo' and coalesce(scheduled_at, now()) <= now() + interval '1 minute')
"""
"""Jobs that run, or that are due soon, as after a failed attempt."""


async def settle(testbed: KillsTestbed, http: ClientSession, database: Database) -> int:
    """Run until nothing changes any more. Return the number of rounds. Raises `Failed` if there is no end."""
    begun, before = datetime.now(UTC), None
    ahead, days_left = timedelta(), _DAYS
    for number in range(1, _ROUNDS + 1):
        ahead += _STEP
        await _move_clock(testbed, http, datetime.now(UTC) + ahead)
        async with database.connection() as conn:
            await _worked(conn)
            state, unread = await conn.fetchval(_STATE), await conn.fetchval(_UNREAD, begun)
        if state == before and not unread:
            if not days_left:
                return number
            days_left -= 1
            ahead += _DAY
        before = state
    raise Failed(f"the reconciliation still changes something after {_ROUNDS} rounds")


async def _move_clock(testbed: KillsTestbed, http: ClientSession, at: datetime) -> None:
    """Move the clock of the app, which also stores all jobs at fixed times. A parent may just be starting."""
    for _ in range(60):
        try:
            body = {"app": APP, "at": rfc3339(at)}
            async with http.post(f"{testbed.url}/dev/clock", json=body, raise_for_status=True):
                return
        except ClientError:
            await asyncio.sleep(1)
    raise Failed("the app's clock cannot be moved")


async def _worked(conn: Connection) -> None:
    """Wait until no job is due. Those of killed workers are taken over after some seconds."""
    try:
        async with asyncio.timeout(_ROUND_S):
            while await conn.fetchval(_JOBS):  # noqa: ASYNC110 - no event for the work of other processes
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise Failed(f"jobs are still due after {_ROUND_S} s") from None
