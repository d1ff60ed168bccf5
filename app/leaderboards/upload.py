"""Upload a score (§4.14)."""

from sys import float_info
from typing import Any, Literal

from pydantic import Field, field_validator

from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.leaderboards.boards import board_of, elapsed_s
from app.leaderboards.errors import InReward
from storage.leaderboards import leaderboards
from storage.leaderboards.leaderboards import Change
from streams.wire.codec import dumps, rfc3339
from streams.wire.model import Model

_EXTRA_BYTES = 4096
_MAX_SCORE = float_info.max
_SHORTEST_LOCK_S = 600
"""While rewards are granted, the lock lasts for at least this time."""


class Score(Model):
    score: float = Field(ge=-_MAX_SCORE, le=_MAX_SCORE)
    """Stored unchanged. It replaces the user's earlier score in this period."""
    extra: dict[str, Any] | None = None
    """Returned by queries. At most 4 KiB of JSON."""

    @field_validator("extra")
    @classmethod
    def _check_extra(cls, extra: dict[str, Any] | None) -> dict[str, Any] | None:
        if extra is not None and len(dumps(extra)) > _EXTRA_BYTES:
            raise ValueError(f"must be at most {_EXTRA_BYTES} bytes of JSON")
        return extra


class ScoreUpload(Model):
    name: str
    """The board."""
    data: Score


class Uploaded(Model):
    name: str
    period: str
    """When the current period began."""
    order: Literal["DESC", "ASC"]
    post_time: str
    status: Literal["ok"] = "ok"
    elapsed_seconds: int
    """How long the current period has lasted."""


class UploadReply(Model):
    """The user's entry on the board."""

    leaderboard: list[Uploaded]
    """One entry."""


async def upload(call: Call, body: Body[ScoreUpload]) -> UploadReply:
    """Upload a score.

    The score replaces the user's earlier one in this period. Among users with equal scores, the one who reached it
    first ranks first; uploading the same score again does not change that. A retry after an error is safe.
    """
    services, board = call.services, await board_of(call, body.name)
    extra, score = body.data.extra, body.data.score + 0.0  # There is no negative zero.
    async with services.database.connection() as conn:
        uploaded = await leaderboards.upload(
            conn,
            call.app_id,
            call.caller.user,
            board=board.name,
            score=score,
            extra=None if extra is None else dumps(extra).decode(),
            starts=board.starts,
            descending=board.config.descending,
            has_rewards=bool(board.config.rewards),
            offset_s=services.clock.offset_s(call.app_id),
        )
    if uploaded.unlocked_at is not None:
        left_s = (uploaded.unlocked_at - uploaded.uploaded_at).total_seconds()
        raise InReward(retry_after_s=min(left_s, _SHORTEST_LOCK_S))
    period = board.period(uploaded.began_at)
    change = Change(call.caller.user, uploaded.change, score, extra is not None)
    if not await services.boards.put(period, [change]):
        services.boards.build_soon(period, ends_at=board.end_of(uploaded.began_at), now=uploaded.uploaded_at)
    posted = Uploaded(
        name=board.name,
        period=rfc3339(uploaded.began_at),
        order=board.config.order,
        post_time=rfc3339(uploaded.uploaded_at),
        elapsed_seconds=elapsed_s(uploaded.began_at, uploaded.uploaded_at),
    )
    return UploadReply(leaderboard=[posted])
