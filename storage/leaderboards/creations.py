"""When the configs of boards were created. The only period of a board that is never reset begins then."""

from datetime import datetime

from storage.configs.kinds.leaderboards import Leaderboard
from storage.configs.store import Active
from storage.leaderboards import leaderboards
from storage.postgres.database import Database


class BoardCreations:
    """Caches the creation time for the active config of each board."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[str, str], tuple[Active[Leaderboard], datetime]] = {}

    async def of(self, app_id: str, board: str, active: Active[Leaderboard]) -> datetime:
        """Return when the config of a board was created. This is read once for each revision."""
        found = self._known.get((app_id, board))
        if found is None or found[0] is not active:
            async with self._database.connection() as conn:
                found = active, await leaderboards.created_at(conn, app_id, board=board)
            self._known[app_id, board] = found
        return found[1]
