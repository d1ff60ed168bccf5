"""The job that completes the indexes of boards."""

import structlog

from app.services import Services
from storage.leaderboards import leaderboards
from storage.leaderboards.leaderboards import CheckBoardIndexes, CheckedPeriod

log = structlog.get_logger()

_BATCH = 1000


async def check_board_indexes(services: Services, _: CheckBoardIndexes) -> None:
    """Add the scores that were stored since the last check to the indexes.

    Uploads add their own scores, unless their process dies or Valkey fails first. Adding a score again has no
    effect.
    """
    async with services.database.connection() as conn:
        periods = await leaderboards.checked_periods(conn)
    for found in periods:
        async with services.database.transaction() as conn:
            last = await leaderboards.last_change(conn, found.period)
        await _check(services, found, last=last)
        async with services.database.connection() as conn:
            await leaderboards.mark_checked(conn, found.period_id, change=last)


async def _check(services: Services, found: CheckedPeriod, *, last: int) -> None:
    after = found.checked_change
    while True:
        async with services.database.connection() as conn:
            batch = await leaderboards.changed(conn, found.period_id, after=after, last=last, limit=_BATCH)
        if batch:
            await services.boards.complete(found.period, batch)
            after = batch[-1].number
        if len(batch) < _BATCH:
            return
