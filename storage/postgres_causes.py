"""Converts errors of PostgreSQL: a cause that clients may read, and whether the database is unavailable."""

import asyncpg

from storage.pool import AllInUse
from streams.wire.errors import DatabaseError, DatabaseUnavailable, StoreError
from streams.wire.network import network_cause

UNAVAILABLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # Raised if the server has just closed the connection.
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,  # Raised by a primary that is being demoted.
    asyncpg.TransactionRollbackError,
)
"""Errors that are not due to the statement, which may succeed later."""

_CAUSES = {
    "25006": "the database is read-only",
    "28000": "the database refuses this server's user",
    "28P01": "the database refuses this server's password",
    "3D000": "the database does not exist",
    "53100": "the database's disk is full",
    "53200": "the database is out of memory",
    "53300": "the database accepts no more connections",
    "53400": "the database has reached one of its configured limits",
    "57014": "the database canceled a statement",
    "57P01": "the database is shutting down",
    "57P02": "the database has crashed",
    "57P03": "the database is starting up or shutting down",
    "57P04": "the database does not exist",
    "58030": "the database cannot read or write its disk",
}
"""By SQLSTATE."""
_NOT_REACHABLE = "the database is not reachable"
_IN_PLACE_OF_TLS = {
    "rejected SSL upgrade": "the server at its address is not PostgreSQL, or refuses TLS",
    "unexpected connection_lost": "the server at its address closed the connection without a response",
}
"""By a part of the message of asyncpg's `ConnectionError` after its request for a TLS connection."""
_WRITE_FAILURES = frozenset({"25006", "53100", "58030"})
_SINGLE_STATEMENT = frozenset({"40001", "40P01", "57014"})
"""SQLSTATEs of errors in `UNAVAILABLE` that concern a single statement or transaction."""


class TransactionConflict(DatabaseUnavailable):
    """The database rolled back a transaction because of a conflict with another. A repeat of it may succeed."""

    def __init__(self) -> None:
        super().__init__("the database rolled back a transaction because of a conflict with another")


class Locked(DatabaseError):
    """Another transaction holds the lock of a row for longer than the `lock_timeout` of the connection."""


class DuplicateRow(DatabaseError):
    """A row with the same values exists. `constraint` is the name of the unique constraint or index."""

    def __init__(self, constraint: str) -> None:
        super().__init__("the database refused a duplicate row")
        self.constraint = constraint


def store_error(error: Exception) -> StoreError | None:
    """Convert a PostgreSQL error to `DatabaseUnavailable` or `DatabaseError`. Return `None` for other errors."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return DuplicateRow(error.constraint_name or "")
    if isinstance(error, asyncpg.TransactionRollbackError):
        return TransactionConflict()
    if isinstance(error, UNAVAILABLE):
        return DatabaseUnavailable(_cause(error))
    if isinstance(error, asyncpg.LockNotAvailableError):
        return Locked("another transaction holds the lock of a row")
    if not isinstance(error, asyncpg.PostgresError):
        return None
    message = "the database refused a statement"
    if isinstance(error, (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError)):
        message = "the database is not up to date: run `python -m app migrate`"
    elif isinstance(error, asyncpg.InsufficientPrivilegeError):
        message = "the database user lacks a permission"
    return DatabaseError(message)


def is_outage(error: Exception) -> bool:
    """Return whether `error` concerns the database as a whole and not a single statement."""
    return isinstance(error, UNAVAILABLE) and getattr(error, "sqlstate", None) not in _SINGLE_STATEMENT


def forbids_writing(error: Exception) -> bool:
    """Return whether `error` means that the database can be read but not written."""
    return getattr(error, "sqlstate", None) in _WRITE_FAILURES


def _cause(error: Exception) -> str:
    if isinstance(error, AllInUse):
        return "all of this process's connections to the database are in use"
    if isinstance(error, asyncpg.PostgresError) and (known := _CAUSES.get(error.sqlstate or "")):
        return known
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError)):
        return f"{_NOT_REACHABLE}: the connection was lost"
    cause = _in_place_of_tls(error) or network_cause(error)
    return f"{_NOT_REACHABLE}: {cause}" if cause else _NOT_REACHABLE


def _in_place_of_tls(error: Exception) -> str | None:
    if type(error) is not ConnectionError:
        return None
    return next((cause for part, cause in _IN_PLACE_OF_TLS.items() if part in str(error)), None)
