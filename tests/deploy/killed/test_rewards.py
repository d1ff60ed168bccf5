"""Workers that are killed while they grant the rewards of a board lose none of them, and grant none twice."""

import socket
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from app.services import Services
from app.settings import Settings
from app.work.worker import run_jobs
from storage.jobs.jobs import enqueue
from storage.leaderboards.periods import EndPeriods
from streams.tasks import background
from tests.app.leaderboards.boards import Boards
from tests.deploy.commands import command
from tests.deploy.killed.kills import STALLED_S, verify_ledger
from tests.deploy.serving import server_env
from tests.running.servers import running_server
from tests.waiting import until

MEMBERS, WINNERS, KILLS = 500, 400, 3
_USERS = """
insert into users (app_id, uid, create_time, last_login)
select 'default', 'm' || n, now(), now() from generate_series(1, $1) n
"""
_SCORES = """
insert into leaderboard_scores (period_id, app_id, uid, score, change, posted_at)
select (select period_id from leaderboard_periods), 'default', 'm' || n, n, n, now() from generate_series(1, $1) n
"""
_GRANTED = "select count(granted_at) as granted from leaderboard_rewards"
_REWARDED = """
select uid, count(*) as entries, sum(quantity) as quantity from asset_entries
where key like 'board:%' group by uid
"""


@pytest.fixture
async def boards(services: Services, listener: socket.socket) -> AsyncIterator[Boards]:
    """A board with winners whose period is over, on a server that survives the workers."""
    async with running_server(services, listener) as server:
        made = Boards(server)
        now = await made.now()
        rewards = [{"from": 1, "to": WINNERS, "product": "coins_100"}]
        at = f"{now - timedelta(hours=1):%H:%M}"
        await made.configure(reset={"every": "day", "at": at}, rewards=rewards)
        await made.put(await made.user(), 0)
        await made.fetch(_USERS, MEMBERS)
        await made.fetch(_SCORES, MEMBERS)
        await made.move_to(now + timedelta(hours=23))
        yield made


async def granted(boards: Boards) -> int:
    return int((await boards.fetch(_GRANTED))[0]["granted"])


async def end_period(boards: Boards) -> None:
    async with boards.server.services.database.connection() as conn:
        await enqueue(conn, EndPeriods())


async def test_each_winner_is_rewarded_once_although_workers_are_killed(boards: Boards, settings: Settings) -> None:
    for _ in range(KILLS):
        before = await granted(boards)
        await end_period(boards)

        async def further(before: int = before) -> bool:
            return await granted(boards) > before

        async with command("app", "worker", **server_env(settings)) as worker:
            await until(further)
            worker.process.kill()
            await worker.end()
    assert 0 < await granted(boards) < WINNERS
    await end_period(boards)

    async def closed() -> bool:
        [row] = await boards.fetch("select state from leaderboard_periods")
        return bool(row["state"] == "closed")

    async with background(run_jobs(boards.server.services, scheduled=False, poll_s=0.05, stalled_s=STALLED_S)):
        await until(closed)
    rewarded = {row["uid"]: (row["entries"], row["quantity"]) for row in await boards.fetch(_REWARDED)}
    best = range(MEMBERS - WINNERS + 1, MEMBERS + 1)
    assert rewarded == {f"m{score}": (1, 100) for score in best}
    await verify_ledger(settings)
