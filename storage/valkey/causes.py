"""Causes of Valkey outages, in words that clients may read."""

from redis.asyncio.sentinel import MasterNotFoundError
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    CrossSlotTransactionError,
    InvalidPipelineStack,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from streams.wire.network import network_cause

_BY_CLASS = {
    ClusterDownError: "has lost a part of its cluster",
    TryAgainError: "is moving keys within its cluster",
    ClusterError: "is moving keys within its cluster",
    RedisClusterException: "has no cluster that can be used",
    MasterNotFoundError: "has no primary according to Sentinel",
    BusyLoadingError: "is loading its data",
    AuthenticationError: "refuses this server's password",
    NoPermissionError: "refuses this server's user a command",
    OutOfMemoryError: "is out of memory (`maxmemory`)",
    ReadOnlyError: "is read-only",
    InvalidResponse: "is not reachable: the server at its address is neither Valkey nor Redis",
}
"""By exception class, because redis-py removes the first word from the messages of these."""
CROSSED_SLOTS = "all keys must map to the same key slot"
"""redis-py's words for a command that it does not send, because its keys are in several slots of a cluster."""
_UNSENT = (CROSSED_SLOTS, "No way to dispatch this command", "Invalid args in command")
"""redis-py's words for this and for other commands that it does not send to a cluster. It raises the exception of
an unusable cluster."""
_BY_FIRST_WORD = {
    "LOADING": "is loading its data",
    "NOAUTH": "requires a password",
    "WRONGPASS": "refuses this server's password",
    "NOPERM": "refuses this server's user a command",
    "OOM": "is out of memory (`maxmemory`)",
    "READONLY": "is read-only",
    "MISCONF": "cannot write its disk",
    "BUSY": "is busy with a script",
    "DB": "has no database with the number in its URL",
    "MASTERDOWN": "has lost its primary",
    "CLUSTERDOWN": "has lost a part of its cluster",
    "NOREPLICAS": "has too few replicas to be written to",
}


def outage(error: BaseException) -> str | None:
    """Return why Valkey is unavailable, or `None` if it only refused a command."""
    if isinstance(error, RedisConnectionError) and isinstance(error.__cause__, RedisError):
        return outage(error.__cause__)  # For a Unix socket, redis-py wraps the reply to a new connection.
    for kind, cause in _BY_CLASS.items():
        if isinstance(error, kind):
            return None if _is_unsent(error) else cause
    if isinstance(error, ResponseError):
        return _BY_FIRST_WORD.get(str(error).partition(" ")[0])
    if isinstance(error, RedisTimeoutError):
        return "did not answer in time"
    if isinstance(error, (RedisConnectionError, OSError)):
        return f"is not reachable: {network_cause(error) or 'the connection was lost'}"
    return None


def _is_unsent(error: BaseException) -> bool:
    """Return whether redis-py has refused a command itself, because no node of a cluster could execute it."""
    if isinstance(error, (CrossSlotTransactionError, InvalidPipelineStack)):
        return True
    return isinstance(error, RedisClusterException) and any(words in str(error) for words in _UNSENT)
