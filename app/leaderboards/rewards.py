"""Closes periods: stores the winners, and grants their rewards exactly once.

The winners are read in PostgreSQL, in the transaction that closes the period. Each reward is a ledger entry with
its own key, so the job can start again from the beginning after any interruption.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import structlog

from app.assets.grants import grant_of
from app.services import Services
from storage.assets import ledger
from storage.configs.kinds.leaderboards import LEADERBOARDS, Leaderboard
from storage.configs.kinds.products import PRODUCTS
from storage.errors import ConfigNotFound
from storage.leaderboards import periods as board_periods
from storage.leaderboards.periods import EndedPeriod, EndPeriod, EndPeriods, Reward, RewardedRanks
from streams.metrics import CounterMetric
from streams.wire.codec import dumps, rfc3339
from streams.wire.errors import ConfigInvalid

log = structlog.get_logger()

GRANTED = CounterMetric("parley_board_rewards_granted", "Rewards of leaderboards that were granted", ["app"])
_ROUND = 500
_BATCH = 500


async def end_periods(services: Services, _: EndPeriods) -> None:
    """Store a job for each period that has ended."""
    for app_id in services.configs.apps():
        now = services.clock.now(app_id)
        async with services.database.transaction() as conn:
            await board_periods.end_due(conn, app_id, now=now, limit=_ROUND)


async def end_period(services: Services, job: EndPeriod) -> None:
    """Close a period that has ended, grant its rewards, and write the file of its winners."""
    ended = await _close(services, job)
    if ended.state == "open" or (ended.state == "closed" and not job.again):
        return
    missing = await _grant_all(services, ended, again=job.again)
    if missing or ended.state == "closed":
        return
    await _write_winners(services, ended)
    async with services.database.connection() as conn:
        await board_periods.end(conn, ended.period_id, offset_s=services.clock.offset_s(ended.app_id))


async def _close(services: Services, job: EndPeriod) -> EndedPeriod:
    """Close a period that has ended, unless it is already closed. Return the period in its new state."""
    async with services.database.connection() as conn:
        found = await board_periods.find(conn, job.period_id)
    if found.state != "open":
        return found
    config = _config_of(services, found)
    descending = found.descending if config is None else config.descending
    rewards = (
        []
        if config is None
        else [RewardedRanks(reward.from_, reward.to, reward.product) for reward in config.rewards]
    )
    offset_s = services.clock.offset_s(found.app_id)
    async with services.database.transaction() as conn:
        if not await board_periods.is_over(conn, found, offset_s=offset_s):
            return found
    async with services.database.transaction() as conn:
        closed = await board_periods.close(conn, found.period_id, descending=descending, offset_s=offset_s)
        if closed is None:
            return await board_periods.find(conn, found.period_id)
        winners = await board_periods.store_winners(conn, closed, rewards=rewards)
        if not winners:
            await board_periods.end(conn, closed.period_id, offset_s=offset_s)
        ended = await board_periods.find(conn, closed.period_id)
    _log_of(ended).info("board.period_ended", winners=winners)
    await services.boards.drop(ended.period)
    return ended


def _config_of(services: Services, found: EndedPeriod) -> Leaderboard | None:
    """Return the config of a board, or `None` if it was deleted. Without a config, there are no rewards."""
    try:
        return services.configs.get(LEADERBOARDS, found.app_id, found.board).value
    except ConfigNotFound:
        return None


async def _grant_all(services: Services, ended: EndedPeriod, *, again: bool) -> int:
    """Grant the rewards of a period, and return how many could not be granted."""
    rank, granted, faults = 0, 0, []
    while True:
        async with services.database.connection() as conn:
            batch = await board_periods.rewards_after(
                conn, ended.period_id, rank=rank, only_due=not again, limit=_BATCH
            )
        for reward in batch:
            try:
                granted += await _grant(services, ended, reward)
            except ConfigInvalid as error:
                faults.append(error.what)
        if len(batch) < _BATCH:
            break
        rank = batch[-1].rank
    if granted:
        _log_of(ended).info("board.rewarded", granted=granted)
    if faults:
        _log_of(ended).error("board.rewards_failed", count=len(faults), error=faults[0])
    return len(faults)


async def _grant(services: Services, ended: EndedPeriod, reward: Reward) -> bool:
    """Grant a reward. Return `False` if it is granted already."""
    product = services.configs.required(PRODUCTS, ended.app_id, reward.product).value
    now, key = services.clock.now(ended.app_id), _key_of(ended, reward)
    entry = grant_of(
        product,
        reward.product,
        key=key,
        receipt_id=key,
        subscription=key,
        origin="reward",
        channel="server",
        start=now,
    )
    async with services.database.transaction() as conn:
        new = await ledger.post(conn, ended.app_id, reward.uid, entry=entry, now=now, sinks=services.sinks)
        await board_periods.mark_granted(conn, ended.period_id, uid=reward.uid, now=now)
    if new:
        GRANTED.add(1, ended.app_id)
    return new


def _key_of(ended: EndedPeriod, reward: Reward) -> str:
    return f"board:{ended.board}:{rfc3339(ended.starts_at)}:{reward.uid}"


async def _write_winners(services: Services, ended: EndedPeriod) -> None:
    """Write the file of a period's winners. Writing it again produces the same file."""
    async with aclosing(_document(services, ended)) as document:
        await services.objects.put(ended.object_key, document, content_type="application/json")


async def _document(services: Services, ended: EndedPeriod) -> AsyncGenerator[bytes]:
    """Yield the JSON of the winners in pieces. No connection is held between them."""
    head = {
        "app": ended.app_id,
        "name": ended.board,
        "period": rfc3339(ended.starts_at),
        "ends_at": rfc3339(ended.ends_at),
        "order": "DESC" if ended.descending else "ASC",
        "closed_at": rfc3339(ended.closed_at),
    }
    yield dumps(head)[:-1] + b',"rewards":['
    rank, separator = 0, b""
    while True:
        async with services.database.connection() as conn:
            batch = await board_periods.rewards_after(
                conn, ended.period_id, rank=rank, only_due=False, limit=_BATCH
            )
        for reward in batch:
            winner = {"rank": reward.rank, "member": reward.uid, "score": reward.score, "product": reward.product}
            yield separator + dumps(winner)
            separator = b","
        if len(batch) < _BATCH:
            break
        rank = batch[-1].rank
    yield b"]}"


def _log_of(ended: EndedPeriod) -> structlog.stdlib.BoundLogger:
    bound: structlog.stdlib.BoundLogger = log.bind(
        app_id=ended.app_id, board=ended.board, period=rfc3339(ended.starts_at)
    )
    return bound
