"""A connection to PostgreSQL, as far as functions that execute SQL use it. Those of asyncpg's pool are proxies."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol


class Row(Protocol):
    """A row of a result: a mapping of its columns, and a sequence of their values, over which it iterates."""

    def __getitem__(self, column: str | int) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...

    def keys(self) -> Iterator[str]: ...

    def values(self) -> Iterator[Any]: ...

    def items(self) -> Iterator[tuple[str, Any]]: ...


class Connection(Protocol):
    """Executes SQL. Arguments are those of `$1`, `$2`… Errors are those of asyncpg, which `map_errors` converts."""

    async def execute(self, query: str, *args: object) -> str:
        """Return the status of the last statement, such as `UPDATE 3`. Without arguments, there may be several."""

    async def executemany(self, command: str, args: Iterable[Sequence[object]]) -> None:
        """Execute a statement for each sequence of arguments, in one transaction."""

    async def fetch(self, query: str, *args: object) -> list[Row]:
        """Return all rows."""

    async def fetchmany(self, query: str, args: Iterable[Sequence[object]]) -> list[Row]:
        """Return the rows of a statement that is executed for each sequence of arguments, in one transaction."""

    async def fetchrow(self, query: str, *args: object) -> Row | None:
        """Return the first row, or `None` if there is none."""

    async def fetchval(self, query: str, *args: object) -> Any:
        """Return the first column of the first row, or `None` if there is none."""

    def transaction(
        self, *, isolation: Literal["repeatable_read"] | None = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]:
        """Begin a transaction, or a savepoint in one."""

    def is_in_transaction(self) -> bool: ...

    def is_closed(self) -> bool: ...


def one(row: Row | None) -> Row:
    """Return the row of a statement that always has one."""
    assert row is not None, "the statement returns a row"
    return row
