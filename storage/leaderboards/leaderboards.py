"""Scores of leaderboards (§2.11) in PostgreSQL, which is authoritative."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, NamedTuple

from storage.configs.kinds.leaderboards import LEADERBOARDS
from storage.jobs.jobs import Job
from storage.postgres.connection import one
from storage.postgres.database import Connection


@dataclass(frozen=True, slots=True)
class BoardPeriod:
    """A period of a board."""

    app_id: str
    board: str
    starts_at: datetime
    descending: bool


class CheckBoardIndexes(Job):
    """Add scores to the indexes of boards whose processes died before they could add them."""

    task: ClassVar[str] = "check_board_indexes"
    attempts: ClassVar[int] = 2


class Change(NamedTuple):
    """The last change of a user's score. The lower number of two equal scores came first."""

    uid: str
    number: int
    score: float
    has_extra: bool


class Standing(NamedTuple):
    """A user's rank. `extra` is JSON as it was sent."""

    uid: str
    score: float
    rank: int
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    """The outcome of an upload. The score was not stored if there is an `unlocked_at`."""

    uploaded_at: datetime
    """The time of the app by the clock of the database."""
    began_at: datetime
    """When the period of the score began."""
    change: int
    unlocked_at: datetime | None
    """The latest time at which the board accepts scores again, if it is locked for rewards."""


_UPLOAD = "select * from upload_score($1, $2, $3, $4, $5, $6, $7, $8, $9)"


async def upload(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    board: str,
    score: float,
    extra: str | None,
    starts: Sequence[datetime],
    descending: bool,
    has_rewards: bool,
    offset_s: float,
) -> Upload:
    """Store a score in the current period, unless the board is locked for rewards. This is one statement.

    `starts`: the beginnings of the periods around this moment, in ascending order.
    """
    return Upload(
        *one(
            await conn.fetchrow(
                _UPLOAD, app_id, board, uid, score, extra, starts, descending, has_rewards, offset_s
            )
        )
    )


_CREATED = """
select min(created_at) from config_revisions where app_id = $1 and kind = $2 and name = $3 and revision > (
    select coalesce(max(revision), 0) from config_revisions
    where app_id = $1 and kind = $2 and name = $3 and value is null)
"""


async def created_at(conn: Connection, app_id: str, *, board: str) -> datetime:
    """Return when the config of a board was created."""
    created: datetime = await conn.fetchval(_CREATED, app_id, LEADERBOARDS.name, board)
    return created


_PERIOD = "(select period_id from leaderboard_periods where app_id = $1 and board = $2 and starts_at = $3)"
_EXTRAS = f"select uid, extra from leaderboard_scores where period_id = {_PERIOD} and uid = any($4)"


async def extras(conn: Connection, period: BoardPeriod, *, uids: Sequence[str]) -> dict[str, str | None]:
    """Return the `extra` of users' scores. Users without a score are missing."""
    rows = await conn.fetch(_EXTRAS, period.app_id, period.board, period.starts_at, uids)
    return {row["uid"]: row["extra"] for row in rows}


def _entries(order: str) -> str:
    return f"""
    select uid, score, $4 - 1 + row_number() over (order by score {order}, change) as rank, extra from (
        select uid, score, change, extra from leaderboard_scores where period_id = {_PERIOD}
        order by score {order}, change offset $4 - 1 limit $5) page order by rank
    """


_ENTRIES = {True: _entries("desc"), False: _entries("asc")}
"""By whether the highest score is the best."""


async def standings(conn: Connection, period: BoardPeriod, *, first: int, last: int) -> list[Standing]:
    """Return the users with these ranks."""
    statement = _ENTRIES[period.descending]
    rows = await conn.fetch(statement, period.app_id, period.board, period.starts_at, first, last - first + 1)
    return [Standing(*row) for row in rows]


def _rank(better: str) -> str:
    return f"""
    select 1 + (select count(*) from leaderboard_scores other
            where other.period_id = own.period_id and other.score {better} own.score)
        + (select count(*) from leaderboard_scores other
            where other.period_id = own.period_id and other.score = own.score and other.change < own.change)
    from leaderboard_scores own where period_id = {_PERIOD} and uid = $4
    """


_RANK = {True: _rank(">"), False: _rank("<")}
"""By whether the highest score is the best."""


async def rank_of(conn: Connection, period: BoardPeriod, *, uid: str) -> int:
    """Return the rank of a user by counting, or 0 without a score."""
    statement = _RANK[period.descending]
    rank: int | None = await conn.fetchval(statement, period.app_id, period.board, period.starts_at, uid)
    return rank or 0


_CHANGES = f"""
select uid, change, score, extra is not null from leaderboard_scores
where period_id = {_PERIOD} and uid > $4 order by uid limit $5
"""


async def changes(conn: Connection, period: BoardPeriod, *, after: str, limit: int) -> list[Change]:
    """Return scores of a period in the order of user ids, beginning after `after`."""
    rows = await conn.fetch(_CHANGES, period.app_id, period.board, period.starts_at, after, limit)
    return [Change(*row) for row in rows]


_NOT_CHECKED = """
select period_id, app_id, board, starts_at, descending, checked_change from leaderboard_periods
where state <> 'closed' order by period_id
"""
_LOCK = "select pg_advisory_xact_lock(36, hashtext($1 || '/' || $2))"
_LAST_CHANGE = "select last_value from leaderboard_changes"
_CHANGED = """
select uid, change, score, extra is not null from leaderboard_scores
where period_id = $1 and change > $2 and change <= $3 order by change limit $4
"""


@dataclass(frozen=True, slots=True)
class CheckedPeriod:
    """A period that accepts scores. Its changes up to `checked_change` are known to be in the index."""

    period_id: int
    period: BoardPeriod
    checked_change: int


async def checked_periods(conn: Connection) -> list[CheckedPeriod]:
    """Return all periods that are not closed."""
    return [
        CheckedPeriod(period_id, BoardPeriod(*period), checked)
        for period_id, *period, checked in await conn.fetch(_NOT_CHECKED)
    ]


async def last_change(conn: Connection, period: BoardPeriod) -> int:
    """Return the number of a change up to which all changes of the board are committed. `conn` is in a transaction.

    The lock of the board waits for running uploads.
    """
    await lock_board(conn, period.app_id, board=period.board)
    number: int = await conn.fetchval(_LAST_CHANGE)
    return number


async def lock_board(conn: Connection, app_id: str, *, board: str) -> None:
    """Wait for the running uploads of a board, and block new ones until the transaction ends."""
    await conn.execute(_LOCK, app_id, board)


async def changed(conn: Connection, period_id: int, *, after: int, last: int, limit: int) -> list[Change]:
    """Return the scores whose last change is after one number and up to another, in this order."""
    return [Change(*row) for row in await conn.fetch(_CHANGED, period_id, after, last, limit)]


async def mark_checked(conn: Connection, period_id: int, *, change: int) -> None:
    """Record that the changes up to this number are in the index."""
    await conn.execute(
        "update leaderboard_periods set checked_change = $2 where period_id = $1 and checked_change < $2",
        period_id,
        change,
    )


_OPEN_OF_APP = """
select app_id, board, starts_at, descending from leaderboard_periods where app_id = $1 and state <> 'closed'
"""
_ERASE = "delete from leaderboard_scores where app_id = $1 and uid = $2"


async def erase(conn: Connection, app_id: str, uid: str) -> list[BoardPeriod]:
    """Delete the scores of a deactivated user. Return the periods whose indexes may contain the user."""
    await conn.execute(_ERASE, app_id, uid)
    return [BoardPeriod(*row) for row in await conn.fetch(_OPEN_OF_APP, app_id)]
