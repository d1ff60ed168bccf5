"""Converts errors of PostgreSQL: a cause that clients may read, and whether the database is unavailable."""

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from storage.postgres.pool import AllInUse
from streams.wire.errors import DatabaseError, DatabaseUnavailable, StoreError
from streams.wire.network import network_cause

UNAVAILABLE = (
    OSError,
    TimeoutError,
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
"""Errors that are not due to the statement, which may succeed later. Some `asyncpg.InterfaceError`s are others."""
_LOST = ("closed", "closing", "released back to the pool")
"""Words in the message of an `asyncpg.InterfaceError` for a lost connection. Other `InterfaceError`s are due to the
caller, for example to a wrong number of arguments."""

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
_WRONG_OPTIONS = (
    ValueError,
    asyncpg.InterfaceError,
    asyncpg.UndefinedObjectError,
    asyncpg.InvalidParameterValueError,
    asyncpg.CantChangeRuntimeParamError,
)
_REFUSED_BY_POOLER = "unsupported startup parameter"
_SET_BY_US = "lock_timeout"
_NOT_DIRECT = "it is the URL of a pooler, so set DATABASE_DIRECT_URL to the URL of PostgreSQL itself"
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
    """The database rolled back a transaction because of a conflict with another one. Repeating it may succeed."""

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
    if _is_unavailable(error):
        return DatabaseUnavailable(_cause(error))
    if isinstance(error, asyncpg.LockNotAvailableError):
        return Locked("another transaction holds the lock of a row")
    if not isinstance(error, (asyncpg.PostgresError, asyncpg.InterfaceError)):
        return None
    message = "the database refused a statement"
    if isinstance(error, (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError)):
        message = "the database is not up to date: run `python -m app migrate`"
    elif isinstance(error, (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)):
        message = "a pooler shares the sessions of the database: set DATABASE_DIRECT_URL"
    elif isinstance(error, asyncpg.InsufficientPrivilegeError):
        message = "the database user lacks a permission"
    elif isinstance(error, asyncpg.InterfaceError):
        message = "a statement could not be sent to the database"
    return DatabaseError(message)


def is_outage(error: Exception) -> bool:
    """Return whether `error` concerns the database as a whole and not a single statement."""
    return _is_unavailable(error) and getattr(error, "sqlstate", None) not in _SINGLE_STATEMENT


def forbids_writing(error: Exception) -> bool:
    """Return whether `error` means that the database can be read but not written."""
    return getattr(error, "sqlstate", None) in _WRITE_FAILURES


def wrong_option(error: Exception) -> str | None:
    """Return what is wrong with the options of a connection if `error`, raised while it is opened, is due to them.

    asyncpg passes the options that it does not know to PostgreSQL.
    """
    if isinstance(error, asyncpg.ProtocolViolationError) and _REFUSED_BY_POOLER in str(error):
        return _NOT_DIRECT if _SET_BY_US in str(error) else str(error)
    if not isinstance(error, _WRONG_OPTIONS) or _is_unavailable(error):
        return None
    if isinstance(error, asyncpg.ClientConfigurationError) and "target_session_attrs" in str(error):
        # asyncpg's message has the representation of a method in place of the values.
        return f"target_session_attrs must be one of {', '.join(one.value for one in SessionAttribute)}"
    return str(error)


def _is_unavailable(error: Exception) -> bool:
    if isinstance(error, asyncpg.InterfaceError):
        return any(part in str(error) for part in _LOST)
    return isinstance(error, UNAVAILABLE)


def _cause(error: Exception) -> str:
    if isinstance(error, AllInUse):
        return "all of this process's connections to the database are in use"
    if isinstance(error, asyncpg.PostgresError) and (known := _CAUSES.get(error.sqlstate or "")):
        return known
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "no host of the database has the role that `target_session_attrs` requires"
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError, asyncpg.PostgresConnectionError)):
        return f"{_NOT_REACHABLE}: the connection was lost"
    cause = _in_place_of_tls(error) or network_cause(error)
    return f"{_NOT_REACHABLE}: {cause}" if cause else _NOT_REACHABLE


def _in_place_of_tls(error: Exception) -> str | None:
    if type(error) is not ConnectionError:
        return None
    return next((cause for part, cause in _IN_PLACE_OF_TLS.items() if part in str(error)), None)
