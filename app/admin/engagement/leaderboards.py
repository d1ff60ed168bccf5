"""Admin API of leaderboards: the current and past periods of a board, with their ranks and winners."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.admin.apps import require_app
from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.reasons import origin_with_reason
from app.http.paging import Page, PageQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, Query
from app.http.rows.replies import Empty, Json
from app.http.rows.transactions import Transaction
from storage.configs.kinds.leaderboards import LEADERBOARDS, MAX_SIZE
from storage.errors import UnknownApp
from storage.jobs.jobs import enqueue
from storage.leaderboards import leaderboards
from storage.leaderboards import periods as board_periods
from storage.leaderboards.leaderboards import Standing
from storage.leaderboards.periods import Counts, EndedPeriod, EndPeriod, State
from storage.operators import audit
from storage.operators.audit import Subject
from storage.postgres.database import Connection
from streams.wire.codec import encoded, rfc3339
from streams.wire.errors import InvalidOperation, InvalidParameter, ItemNotFound, listed
from streams.wire.model import Model, Moment, QueryInt

_MAX_SPAN = 1000


class BoardNotFound(ItemNotFound):
    """The app has no board with this name, and users have uploaded no scores to one that it had."""

    def __init__(self, board: str) -> None:
        super().__init__(f"leaderboard {listed([board])} does not exist")


class PeriodNotFound(ItemNotFound):
    """The board has no such period, or no user has uploaded a score in it."""

    def __init__(self, board: str) -> None:
        super().__init__(f"leaderboard {listed([board])} has no scores in this period")


class PeriodOpen(InvalidOperation):
    """The period is not over, or its rewards are being granted."""


class BoardPath(Model):
    app: str
    """An app of this server."""
    board: Annotated[str, Field(max_length=64)]
    """A board of the app, whose config may be deleted."""


class PeriodPath(BoardPath):
    period: Moment
    """When the period began."""


class RanksQuery(Model):
    from_: QueryInt = Field(default=1, alias="from", ge=1, le=MAX_SIZE)
    """The first rank."""
    to: QueryInt = Field(default=100, ge=1, le=MAX_SIZE)
    """The last rank, at most 1,000 after the first."""


class PeriodRow(Model):
    period: str
    """When it began."""
    ends_at: str
    order: Literal["DESC", "ASC"]
    state: State
    """`rewarding`: the winners are stored, and their rewards are being granted."""
    closed_at: str
    """When the winners were stored."""
    rewarded_at: str
    """When the last reward was granted; the zero time if there is none."""


class PeriodList(Page[str]):
    """A page of the periods of the board."""

    periods: list[PeriodRow]


class PeriodReply(PeriodRow):
    """The period, with the link to the file of its winners."""

    scores: int
    """How many users have a score."""
    rewards: int
    """How many users have won."""
    granted: int
    """How many of them have received their reward."""
    url: str | None = None
    """A link to the file of the winners, valid for 24 hours. Each call returns a new one."""


class PeriodEntry(Model):
    member: str
    """The user id."""
    score: float
    extra: dict[str, Any] | None = None
    """What was sent with the score."""
    rank: int


class PeriodRanks(Model):
    """The ranks of the period."""

    entries: list[PeriodEntry]


async def list_periods(call: Call, path: Path[BoardPath], query: Query[PageQuery[Moment]]) -> PeriodList:
    """List the periods of a board in which users have uploaded scores.

    The newest comes first. Past periods are kept.
    """
    require_app(call, path.app)
    async with call.services.database.connection() as conn:
        found = await board_periods.page(conn, path.app, board=path.board, before=query.before, size=query.size + 1)
    if not found and query.before is None and not call.services.configs.exists(LEADERBOARDS, path.app, path.board):
        raise BoardNotFound(path.board)
    rows, further = page_of(found, query.size, lambda period: rfc3339(period.starts_at))
    return PeriodList(next=further, periods=[_row(period) for period in rows])


async def read_period(call: Call, path: Path[PeriodPath]) -> PeriodReply:
    """Read a period of a board, with a link to the file of its winners."""
    async with call.services.database.connection() as conn:
        found = await _period_of(call, conn, path)
        counts = await board_periods.counts(conn, found.period_id)
    return PeriodReply(**_row(found).model_dump(), **counts._asdict(), url=_url(call, found, counts))


async def read_ranks(call: Call, path: Path[PeriodPath], query: Query[RanksQuery]) -> Json[PeriodRanks]:
    """Read the ranks of a period, which may be over.

    Deactivated users have no rank, so users behind them rank better than at the end of the period. The file of the
    winners does not change.
    """
    if not 0 <= query.to - query.from_ <= _MAX_SPAN:
        raise InvalidParameter(f"to must be at least from, and at most {_MAX_SPAN} after it")
    async with call.services.database.connection() as conn:
        found = await _period_of(call, conn, path)
        standings = await leaderboards.standings(conn, found.period, first=query.from_, last=query.to)
    return Json({"entries": [_entry(standing) for standing in standings]})


async def reward_again(call: Call, transaction: Transaction, path: Path[PeriodPath]) -> Empty:
    """Grant the rewards of a closed period again.

    Only missing rewards are granted. No winner gets a reward twice. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    async with transaction.begin() as conn:
        found = await _period_of(call, conn, path)
        if found.state != "closed":
            raise PeriodOpen("the period is not over, or its rewards are being granted")
        await enqueue(conn, EndPeriod(app_id=found.app_id, period_id=found.period_id, again=True))
        subject = Subject(path.app, LEADERBOARDS.name, path.board)
        after = {"period": rfc3339(found.starts_at)}
        await audit.record_change(conn, origin, action="board.reward", subject=subject, after=after)
        return transaction.answer(Empty())


async def _period_of(call: Call, conn: Connection, path: PeriodPath) -> EndedPeriod:
    require_app(call, path.app)
    found = await board_periods.find_by_start(conn, path.app, board=path.board, starts_at=path.period)
    if found is None:
        raise PeriodNotFound(path.board)
    return found


def _url(call: Call, found: EndedPeriod, counts: Counts) -> str | None:
    written = found.state == "closed" and counts.rewards
    return call.services.objects.url(found.object_key) if written else None


def _row(found: EndedPeriod) -> PeriodRow:
    return PeriodRow(
        period=rfc3339(found.starts_at),
        ends_at=rfc3339(found.ends_at),
        order="DESC" if found.descending else "ASC",
        state=found.state,
        closed_at=rfc3339(found.closed_at),
        rewarded_at=rfc3339(found.rewarded_at),
    )


def _entry(standing: Standing) -> dict[str, object]:
    entry: dict[str, object] = {"member": standing.uid, "score": standing.score, "rank": standing.rank}
    return entry if standing.extra is None else {**entry, "extra": encoded(standing.extra)}


_PATH = "/admin/api/leaderboards/{app}/{board}"
_PERIOD = _PATH + "/{period}"
_ERRORS = (UnknownApp, PeriodNotFound)

ADMIN_BOARD_ROUTES = [
    Endpoint("GET", _PATH, list_periods, FOR_VIEWERS, errors=(UnknownApp, BoardNotFound)),
    Endpoint("GET", _PERIOD, read_period, FOR_VIEWERS, errors=_ERRORS),
    Endpoint("GET", f"{_PERIOD}/ranks", read_ranks, FOR_VIEWERS, errors=_ERRORS),
    Endpoint("POST", f"{_PERIOD}/rewards", reward_again, FOR_EDITORS, errors=(*_ERRORS, PeriodOpen)),
]
