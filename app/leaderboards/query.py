"""Query the ranks of a board (§4.14)."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.http.rows.replies import Json
from app.leaderboards.boards import Board, board_of, elapsed_s
from storage.configs.kinds.leaderboards import MAX_SIZE
from storage.leaderboards import leaderboards
from storage.leaderboards.index import Ranks
from storage.leaderboards.leaderboards import BoardPeriod, Standing
from streams.wire.codec import encoded, rfc3339
from streams.wire.errors import InvalidParameter, ValkeyUnavailable
from streams.wire.model import Model

_MAX_SPAN = 1000
_COUNT_S = 2
"""How long a query without an index may take."""


class BoardQuery(Model):
    name: str
    """The board."""
    around: int | None = Field(default=None, ge=0, le=100)
    """Also return the caller, and up to this many users above and below."""
    from_: int = Field(alias="from", ge=1, le=MAX_SIZE)
    """The first rank."""
    to: int = Field(ge=1, le=MAX_SIZE)
    """The last rank: at most the board's size, and at most 1,000 after the first."""


class BoardEntry(Model):
    member: str
    """The user id."""
    score: float
    extra: dict[str, Any] | None = None
    """What was sent with the score."""
    rank: int


class BoardView(Model):
    around_data: list[BoardEntry]
    """Empty without `around`, and if the caller has no score."""
    rank_data: list[BoardEntry]
    name: str
    self_rank: int
    """The caller's rank, which may be beyond the board's size. 0: the caller has no score in this period."""
    period: str
    """When the current period began."""
    order: Literal["DESC", "ASC"]
    elapsed_seconds: int
    """How long the current period has lasted."""
    request_time: str


class BoardReply(Model):
    """The ranks of the board, and that of the user."""

    leaderboard: BoardView


async def query(call: Call, body: Body[BoardQuery]) -> Json[BoardReply]:
    """Query the ranks of a board in its current period.

    While Valkey is unavailable, the ranks are counted in PostgreSQL. They are the same, `self_rank` included. If
    that takes longer than 2 s, the error is `redis_service`, with `Retry-After`.
    """
    board = await board_of(call, body.name)
    _check_ranks(body, board)
    now = call.services.clock.now(call.app_id)
    period = board.period(board.start_of(now))
    try:
        ranks = await _read(call, period, body)
    except ValkeyUnavailable as unavailable:
        ranks = await _count_without_index(call, period, body, unavailable)
    if ranks is None:
        call.services.boards.build_soon(period, ends_at=board.end_of(period.starts_at), now=now)
        async with call.services.boards.counting:
            ranks = await _read(call, period, body) or await _count(call, period, body)
    view = {
        "around_data": _views(ranks.near),
        "rank_data": _views(ranks.ranked),
        "name": board.name,
        "self_rank": ranks.own_rank,
        "period": rfc3339(period.starts_at),
        "order": board.config.order,
        "elapsed_seconds": elapsed_s(period.starts_at, now),
        "request_time": rfc3339(now),
    }
    return Json({"leaderboard": view})


def _check_ranks(body: BoardQuery, board: Board) -> None:
    if body.to < body.from_:
        raise InvalidParameter("to must be at least from")
    if body.to > board.config.size:
        raise InvalidParameter(f"to must be at most {board.config.size}, the size of the board")
    if body.to - body.from_ > _MAX_SPAN:
        raise InvalidParameter(f"to must be at most {_MAX_SPAN} after from")


async def _read(call: Call, period: BoardPeriod, body: BoardQuery) -> Ranks | None:
    """Answer from the index. `None`: it is not ready."""
    ranks = await call.services.boards.read(
        period, uid=call.caller.user, first=body.from_, last=body.to, around=body.around or 0
    )
    return None if ranks is None else await _with_extras(call, period, ranks)


async def _with_extras(call: Call, period: BoardPeriod, ranks: Ranks) -> Ranks:
    """Add the `extra` of the scores, if there is any. This omits users who have been deactivated meanwhile."""
    if not ranks.has_extras:
        return ranks
    uids = list({standing.uid for standing in (*ranks.ranked, *ranks.near)})
    async with call.services.database.connection() as conn:
        found = await leaderboards.extras(conn, period, uids=uids)

    def known(standings: Sequence[Standing]) -> list[Standing]:
        return [standing._replace(extra=found[standing.uid]) for standing in standings if standing.uid in found]

    return Ranks(ranks.own_rank, known(ranks.ranked), known(ranks.near))


async def _count_without_index(
    call: Call, period: BoardPeriod, body: BoardQuery, unavailable: ValkeyUnavailable
) -> Ranks:
    """Answer from PostgreSQL while the index cannot be read. Raises `unavailable` if that takes too long.

    Few queries may count at once, and each reads as many rows as there are better scores. So the time includes the
    wait for the others: queries beyond what PostgreSQL can bear fail soon instead of piling up.
    """
    try:
        async with asyncio.timeout(_COUNT_S), call.services.boards.counting:
            return await _count(call, period, body)
    except TimeoutError:
        raise unavailable from None


async def _count(call: Call, period: BoardPeriod, body: BoardQuery) -> Ranks:
    """Answer from PostgreSQL while the index is built."""
    around = body.around or 0
    async with call.services.database.connection() as conn, conn.transaction(isolation="repeatable_read"):
        rank = await leaderboards.rank_of(conn, period, uid=call.caller.user)
        ranked = await leaderboards.standings(conn, period, first=body.from_, last=body.to)
        near: list[Standing] = []
        if rank and around:
            near = await leaderboards.standings(conn, period, first=max(1, rank - around), last=rank + around)
    return Ranks(rank, ranked, near)


def _views(standings: Sequence[Standing]) -> list[dict[str, Any]]:
    return [
        {"member": uid, "score": score, "rank": rank, **({} if extra is None else {"extra": encoded(extra)})}
        for uid, score, rank, extra in standings
    ]
