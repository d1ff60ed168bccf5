"""Scores and ranks."""

from collections.abc import Mapping
from typing import Any, cast

from parley_client.calls import Calls
from parley_client.types import Board, UploadedScore


class Leaderboards:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def upload(self, name: str, score: float, *, extra: Mapping[str, Any] | None = None) -> UploadedScore:
        """Store the user's score, in place of the one before."""
        body = {"name": name, "data": {"score": score, **({} if extra is None else {"extra": extra})}}
        reply = await self._calls.post("/bp/leaderboard/data", body, repeatable=True)
        return cast(UploadedScore, reply["leaderboard"][0])

    async def query(self, name: str, *, first: int = 1, last: int = 10, around: int | None = None) -> Board:
        """Return the ranks from `first` to `last`, and `around` users around this one."""
        body = {"name": name, "from": first, "to": last, "around": around}
        return cast(Board, (await self._calls.post("/bp/leaderboard", body, repeatable=True))["leaderboard"])
