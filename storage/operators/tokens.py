"""The tokens of operators, to recognize guesses without a query for each."""

import time

from storage.operators.operators import PREFIX
from storage.postgres.database import Database
from storage.tokens import digest, is_token

_READ_EVERY_S = 1.0


class OperatorTokens:
    """The digests of all operators' tokens, which this process reads at most once per second.

    They authenticate nobody, because a token that has been removed or replaced since then is still among them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read_at = float("-inf")
        self._digests: frozenset[str] = frozenset()

    async def include(self, token: str) -> bool:
        """Return whether `token` was an operator's when the digests were last read.

        Reads them again after a second. Calls that arrive during the read use the previous digests.
        """
        if not is_token(token, PREFIX):
            return False
        if time.monotonic() >= self._read_at + _READ_EVERY_S:
            self._read_at = time.monotonic()
            async with self._database.connection() as conn:
                self._digests = frozenset(row["digest"] for row in await conn.fetch("select digest from operators"))
        return digest(token) in self._digests
