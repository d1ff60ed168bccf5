"""The board that a request names: its config and the beginnings of its periods."""

from dataclasses import dataclass
from datetime import datetime

from app.http.rows.endpoint import Call
from app.leaderboards.periods import start_of, starts_near
from storage.configs.kinds.leaderboards import LEADERBOARDS, Leaderboard
from storage.leaderboards.leaderboards import BoardPeriod


@dataclass(frozen=True, slots=True)
class Board:
    app_id: str
    name: str
    config: Leaderboard
    starts: tuple[datetime, ...]
    """The beginnings of the periods around this moment; only one if the board is never reset."""

    def period(self, began_at: datetime) -> BoardPeriod:
        return BoardPeriod(self.app_id, self.name, began_at, self.config.descending)

    def start_of(self, moment: datetime) -> datetime:
        """Return the beginning of the period that contains `moment`."""
        return start_of(self.starts, moment)

    def end_of(self, began_at: datetime) -> datetime | None:
        """Return when a period ends. `None`: the board is never reset."""
        return min((start for start in self.starts if start > began_at), default=None)


async def board_of(call: Call, name: str) -> Board:
    """Return the board `name` of the app. Raises `ConfigInvalid` if it does not exist or cannot be used."""
    active = call.services.configs.required(LEADERBOARDS, call.app_id, name)
    reset = active.value.reset
    if reset.every != "never":
        starts = starts_near(reset, call.services.clock.now(call.app_id))
    else:
        starts = (await call.services.board_creations.of(call.app_id, name, active),)
    return Board(call.app_id, name, active.value, starts)


def elapsed_s(began_at: datetime, now: datetime) -> int:
    """Return the whole seconds of a period that have passed."""
    return max(0, int((now - began_at).total_seconds()))
