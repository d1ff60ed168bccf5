"""What an error of PostgreSQL means: the true cause in words that a client may read, and whether it may pass."""

import asyncpg

from storage.pool import AllInUse
from streams.wire.errors import StoreAway, StoreError
from streams.wire.network import network_cause

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection whose server has just ended it
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,  # of a server that another is taking over from
    asyncpg.TransactionRollbackError,
)
"""The statement may be well, and succeed later."""

_CAUSES = {
    "25006": "the database is read-only",
    "28000": "the database refuses this server's user",
    "28P01": "the database refuses this server's password",
    "3D000": "the database does not exist",
    "40001": "the database undid a transaction because of another",
    "40P01": "the database undid a transaction because of another",
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
_OF_WRITING = frozenset({"25006", "53100", "58030"})
_PASSING = frozenset({"40001", "40P01", "57014"})


class Locked(StoreError):
    """Another holds a row, for longer than this connection waits for one."""


def store_error(error: Exception) -> StoreError | None:
    """`error` as `database`: 503 when PostgreSQL cannot be used for now, 500 when it refused. Else none."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return None
    if isinstance(error, AWAY):
        return StoreAway(_cause(error), error_type="database", retry_after_s=1)
    if isinstance(error, asyncpg.LockNotAvailableError):
        return Locked("another holds the row", error_type="database")
    if not isinstance(error, asyncpg.PostgresError):
        return None
    what = "the database refused a statement"
    if isinstance(error, (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError)):
        what = "the database is not up to date: run `python -m app migrate`"
    elif isinstance(error, asyncpg.InsufficientPrivilegeError):
        what = "the database user lacks a permission"
    return StoreError(what, error_type="database")


def is_outage(error: Exception) -> bool:
    """Whether `error` says something about the database, not about one statement."""
    return isinstance(error, AWAY) and getattr(error, "sqlstate", None) not in _PASSING


def forbids_writing(error: Exception) -> bool:
    """Whether the database can be read, and not written."""
    return getattr(error, "sqlstate", None) in _OF_WRITING


def _cause(error: Exception) -> str:
    if isinstance(error, AllInUse):
        return "all of this process's connections to the database are in use"
    if isinstance(error, asyncpg.PostgresError) and (known := _CAUSES.get(error.sqlstate or "")):
        return known
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError)):
        return "the database is not reachable: the connection was lost"
    cause = network_cause(error)
    return f"the database is not reachable{f': {cause}' if cause else ''}"
