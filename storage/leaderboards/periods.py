"""Closed periods of leaderboards: their winners and rewards."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal, NamedTuple

from storage.clock import app_now
from storage.jobs.jobs import Job, enqueue
from storage.leaderboards.leaderboards import BoardPeriod, lock_board
from storage.postgres.connection import one
from storage.postgres.database import Connection

State = Literal["open", "rewarding", "closed"]


class EndPeriods(Job):
    """Store a job for each period that has ended."""

    task: ClassVar[str] = "end_board_periods"
    attempts: ClassVar[int] = 2


class EndPeriod(Job):
    """Store the winners of a period, and grant their rewards.

    The next round retries rewards that could not be granted, so the job needs few attempts.
    """

    task: ClassVar[str] = "end_board_period"
    attempts: ClassVar[int] = 3
    timeout_s: ClassVar[float] = 3000
    app_id: str
    period_id: int
    again: bool = False
    """Whether to grant the missing rewards of a closed period again."""


class Reward(NamedTuple):
    """The reward of a winner."""

    rank: int
    uid: str
    score: float
    product: str


class RewardedRanks(NamedTuple):
    first: int
    last: int
    product: str


@dataclass(frozen=True, slots=True)
class EndedPeriod:
    """A period of a board. Only the period of a board that is never reset has no end."""

    period_id: int
    app_id: str
    board: str
    starts_at: datetime
    ends_at: datetime | None
    descending: bool
    state: State
    closed_at: datetime | None
    """When the winners were stored."""
    rewarded_at: datetime | None
    """When the last reward was granted. `None`: not yet, or there are none."""

    @property
    def period(self) -> BoardPeriod:
        return BoardPeriod(self.app_id, self.board, self.starts_at, self.descending)

    @property
    def object_key(self) -> str:
        """The key of the file with the winners."""
        return f"leaderboards/{self.app_id}/{self.board}/{self.period_id}.json"


_COLUMNS = ", ".join(EndedPeriod.__slots__)
_DUE = """
select period_id from leaderboard_periods where app_id = $1 and state <> 'closed' and ends_at <= $2
order by ends_at limit $3
"""


async def end_due(conn: Connection, app_id: str, *, now: datetime, limit: int) -> int:
    """Store the jobs of periods that have ended. `conn` is in a transaction. Return the number of these periods."""
    due = [row["period_id"] for row in await conn.fetch(_DUE, app_id, now, limit)]
    for period_id in due:
        await enqueue(conn, EndPeriod(app_id=app_id, period_id=period_id), key=f"board-period:{period_id}")
    return len(due)


_FIND = f"select {_COLUMNS} from leaderboard_periods where period_id = $1"


async def find(conn: Connection, period_id: int) -> EndedPeriod:
    """Return a period. It exists, because periods are not deleted."""
    return EndedPeriod(**one(await conn.fetchrow(_FIND, period_id)))


_BY_START = f"""
select {_COLUMNS} from leaderboard_periods where app_id = $1 and board = $2 and starts_at = $3
"""


async def find_by_start(conn: Connection, app_id: str, *, board: str, starts_at: datetime) -> EndedPeriod | None:
    row = await conn.fetchrow(_BY_START, app_id, board, starts_at)
    return None if row is None else EndedPeriod(**row)


_PAGE = f"""
select {_COLUMNS} from leaderboard_periods
where app_id = $1 and board = $2 and ($3::timestamptz is null or starts_at < $3) order by starts_at desc limit $4
"""


async def page(
    conn: Connection, app_id: str, *, board: str, before: datetime | None, size: int
) -> list[EndedPeriod]:
    """Return the periods of a board that have scores, the newest first."""
    return [EndedPeriod(**row) for row in await conn.fetch(_PAGE, app_id, board, before, size)]


_COUNTS = """
select (select count(*) from leaderboard_scores where period_id = $1) as scores,
    count(*) as rewards, count(granted_at) as granted
from leaderboard_rewards where period_id = $1
"""


class Counts(NamedTuple):
    scores: int
    rewards: int
    granted: int


async def counts(conn: Connection, period_id: int) -> Counts:
    return Counts(*one(await conn.fetchrow(_COUNTS, period_id)))


_CLOSE = f"""
update leaderboard_periods set state = 'rewarding', closed_at = {app_now("$3")}, descending = $2
where period_id = $1 and state = 'open' and ends_at <= {app_now("$3")} returning {_COLUMNS}
"""


async def close(conn: Connection, period_id: int, *, descending: bool, offset_s: float) -> EndedPeriod | None:
    """Close a period whose scores are all committed. Return `None` if it is already closed or has not ended."""
    row = await conn.fetchrow(_CLOSE, period_id, descending, offset_s)
    return None if row is None else EndedPeriod(**row)


_IS_OVER = f"select ends_at <= {app_now('$2')} from leaderboard_periods where period_id = $1"


async def is_over(conn: Connection, ended: EndedPeriod, *, offset_s: float) -> bool:
    """Wait for running uploads. Return whether the period has ended, so that it gets no further scores.

    `conn` is in a transaction. The time of a transaction is the time of its beginning, which precedes the lock of
    the board; the lock precedes the times of later uploads.
    """
    await lock_board(conn, ended.app_id, board=ended.board)
    over: bool = await conn.fetchval(_IS_OVER, ended.period_id, offset_s)
    return over


def _winners(order: str) -> str:
    return f"""
    insert into leaderboard_rewards (period_id, app_id, uid, rank, score, product)
    select period_id, app_id, uid, rank, score, product from (
        select score.*, row_number() over (order by score {order}, change) as rank
        from leaderboard_scores score join users using (app_id, uid)
        where period_id = $1 and status <> 'deactivated' order by score {order}, change limit $2) ranked
    join unnest($3::bigint[], $4::bigint[], $5::text[]) as reward (first, last, product)
        on rank between first and last
    """


_WINNERS = {True: _winners("desc"), False: _winners("asc")}
"""By whether the highest score is the best."""


async def store_winners(conn: Connection, ended: EndedPeriod, *, rewards: Sequence[RewardedRanks]) -> int:
    """Store the winners and their rewards at the end of a period. Return the number of winners."""
    if not rewards:
        return 0
    most = max(reward.last for reward in rewards)
    status: str = await conn.execute(
        _WINNERS[ended.descending], ended.period_id, most, *map(list, zip(*rewards, strict=True))
    )
    return int(status.rpartition(" ")[2])


_REWARDS = """
select rank, uid, score, product from leaderboard_rewards
where period_id = $1 and rank > $2 and (granted_at is null or not $3) order by rank limit $4
"""


async def rewards_after(conn: Connection, period_id: int, *, rank: int, only_due: bool, limit: int) -> list[Reward]:
    """Return the rewards of ranks after a rank, in order; with `only_due`, only those that are not granted."""
    return [Reward(*row) for row in await conn.fetch(_REWARDS, period_id, rank, only_due, limit)]


_GRANTED = """
update leaderboard_rewards set granted_at = coalesce(granted_at, $3) where period_id = $1 and uid = $2
"""


async def mark_granted(conn: Connection, period_id: int, *, uid: str, now: datetime) -> None:
    await conn.execute(_GRANTED, period_id, uid, now)


_END = f"""
update leaderboard_periods set state = 'closed', rewarded_at = case when exists (
    select from leaderboard_rewards rewards where rewards.period_id = $1) then {app_now("$2")} end
where period_id = $1 and state = 'rewarding' returning true
"""


async def end(conn: Connection, period_id: int, *, offset_s: float) -> bool:
    """Record that all rewards of a period are granted. Return `False` if that is recorded already."""
    return await conn.fetchval(_END, period_id, offset_s) is not None
