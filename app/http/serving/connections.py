"""Limits on the open connections of this process: their number, and the time a client may take to send a head.

A refused connection gets a response, because a client cannot tell why a connection was merely closed.
"""

import asyncio
import os
import resource
import socket as sockets
from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from app.http.callers.addresses import is_trusted, network_of
from app.http.errors import HeadTimeout, error_response
from app.settings import Settings
from streams.metrics import CounterMetric, GaugeMetric
from streams.wire.errors import RateLimited, ServiceError, Unavailable
from streams.wire.ids import new_id

log = structlog.get_logger()

OPEN = GaugeMetric("parley_connections", "Open connections of clients", [])
REFUSED = CounterMetric(
    "parley_connections_refused", "Connections that were not admitted, by the limit that was reached", ["bound"]
)

_UNBOUNDED = 1_000_000
_RESERVED_DESCRIPTORS = 1_000
_SWEEP_S = 1.0
_REFUSAL_S = 2.0
_REFUSALS_AT_ONCE = 128
_UNACKNOWLEDGED_MS = 30_000
_TCP_USER_TIMEOUT: int | None = getattr(sockets, "TCP_USER_TIMEOUT", None)
"""None outside Linux."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The connection limits of one process."""

    connections: int = _UNBOUNDED
    """Maximum number of open connections."""
    per_address: int = _UNBOUNDED
    """Maximum number of open connections per IPv4 address or IPv6 /64 network."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks that are exempt from `per_address`."""
    head_s: float = 10
    """Time for a head to arrive, counted from its first byte; on a new connection, from its opening."""
    keep_alive_s: float = 75
    """Time that a connection may wait for its next request."""

    @classmethod
    def of(cls, settings: Settings) -> "Bounds":
        """Return the limits of the public port, capped by the number of descriptors this process may open."""
        descriptors = _descriptor_limit()
        maximum = _max_connections(descriptors)
        configured = settings.connections
        if configured is not None and configured > maximum:
            log.warning(
                "connections.capped",
                variable="PARLEY_CONNECTIONS",
                configured=configured,
                connections=maximum,
                descriptors=descriptors,
                hint="raise the limit of open files (LimitNOFILE, ulimit -n)",
            )
        return cls(
            connections=min(maximum, configured or maximum),
            per_address=settings.connections_per_address,
            trusted_proxies=settings.trusted_proxies,
            keep_alive_s=settings.keep_alive_s,
        )


def _descriptor_limit() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNBOUNDED * 2 if limit == resource.RLIM_INFINITY else limit


def _max_connections(descriptors: int) -> int:
    """Return the number of connections that `descriptors` allow.

    Some descriptors are reserved for stores and files. Half of the others is for clients, because a stream also
    needs a connection to its vendor.
    """
    return max(1, (descriptors - min(_RESERVED_DESCRIPTORS, descriptors // 4)) // 2)


class Connection(Protocol):
    """The interface that `Connections` needs of a connection it admitted."""

    network: str
    """The network that the connection counts against; empty if it is exempt."""
    awaits_head: bool
    """Whether the connection waits for a head, or for the rest of one."""
    head_began: bool
    """Whether part of the head has arrived. Only meaningful while `awaits_head` is true."""

    def end_for_late_head(self) -> None:
        """Close the connection. Send an error response first if part of the head has arrived."""


class Connections:
    """Admits and counts connections. One timer closes all connections whose head is late."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._open = 0
        self._by_network: Counter[str] = Counter()
        self._late_at: dict[Connection, float] = {}
        """The loop time at which the head of each connection is late, in ascending order."""
        self._refusals: dict[_Refusal, float] = {}
        """The loop time at which each refused connection is closed, in ascending order."""
        self._unlogged: Counter[str] = Counter()
        """Number of refusals per limit since the last log line."""
        self._last_refused = ""
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, connection: Connection, transport: asyncio.Transport) -> bool:
        """Count `connection` and return True, or refuse it and return False.

        On refusal, the protocol of `transport` is replaced by one that sends an error response and closes.
        """
        network = self._network_of(transport)
        self._keep_sweeping()
        if self._open >= self.bounds.connections:
            self._refuse(transport, "process", network)
            return False
        if network and self._by_network[network] >= self.bounds.per_address:
            self._refuse(transport, "address", network)
            return False
        self._open += 1
        OPEN.add(1)
        if network:
            self._by_network[network] += 1
        connection.network = network
        connection.awaits_head = connection.head_began = False
        self._await_head(connection)
        return True

    def release(self, connection: Connection) -> None:
        """Stop counting an admitted connection that has closed."""
        self._late_at.pop(connection, None)
        self._open -= 1
        OPEN.add(-1)
        if network := connection.network:
            self._by_network[network] -= 1
            if not self._by_network[network]:
                del self._by_network[network]

    def head_continues(self, connection: Connection, *, complete: bool) -> None:
        """Note that part of a head has arrived, or all of it (`complete`)."""
        if complete:
            self._late_at.pop(connection, None)
            connection.awaits_head = False
            return
        if not connection.awaits_head:
            self._await_head(connection)
        connection.head_began = True

    def close(self) -> None:
        """Stop the timer and abort the refused connections."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for refusal in self._refusals:
            refusal.transport.abort()
        self._refusals.clear()
        self._log_refusals()

    def _await_head(self, connection: Connection) -> None:
        connection.awaits_head = True
        connection.head_began = False
        self._late_at[connection] = asyncio.get_running_loop().time() + self.bounds.head_s

    def _network_of(self, transport: asyncio.Transport) -> str:
        """Return the network to count against. It comes from the socket, because a client can forge headers."""
        if self.bounds.per_address >= _UNBOUNDED:
            return ""
        peer = transport.get_extra_info("peername")
        if not isinstance(peer, tuple) or is_trusted(peer[0], self.bounds.trusted_proxies):
            return ""
        return network_of(peer[0])

    def _refuse(self, transport: asyncio.Transport, bound: str, network: str) -> None:
        REFUSED.add(1, bound)
        self._unlogged[bound] += 1
        self._last_refused = network
        refusal = _Refusal(transport, _REFUSAL_ERRORS[bound], self._refusals)
        transport.set_protocol(refusal)
        if len(self._refusals) >= _REFUSALS_AT_ONCE:
            refusal.end()  # Each refusal holds a descriptor. Under a flood, some clients see a reset instead.
        else:
            self._refusals[refusal] = asyncio.get_running_loop().time() + _REFUSAL_S

    def _keep_sweeping(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """Close the connections that are late. The cost depends only on their number.

        A head that arrived while the loop was busy is not late, because uvloop reads sockets before it runs timers.
        """
        self._timer = None
        now = asyncio.get_running_loop().time()
        for connection in _due(self._late_at, now):
            del self._late_at[connection]
            connection.end_for_late_head()
        for refusal in _due(self._refusals, now):
            del self._refusals[refusal]
            refusal.end()
        self._log_refusals()
        _check_descriptors(self._open)
        if self._open or self._refusals:
            self._keep_sweeping()

    def _log_refusals(self) -> None:
        if self._unlogged:
            log.warning(
                "connections.refused",
                count=self._unlogged.total(),
                by_bound=dict(self._unlogged),
                last_address=self._last_refused,
                open=self._open,
                connections=self.bounds.connections,
                connections_per_address=self.bounds.per_address,
            )
            self._unlogged.clear()


def _due(times: dict[Any, float], now: float) -> list[Any]:
    """Return the keys of `times`, which is ordered by time, whose time is not after `now`."""
    keys = []
    for key, due in times.items():
        if due > now:
            break
        keys.append(key)
    return keys


class _Refusal(asyncio.Protocol):
    """The protocol of a refused connection: sends an error response and closes.

    The response waits for the first bytes of a request, because clients discard a response that precedes their
    request. The rest of the request is read, because closing a socket with unread bytes would reset the connection
    and lose the response.
    """

    def __init__(
        self, transport: asyncio.Transport, error: ServiceError, refusals: dict["_Refusal", float]
    ) -> None:
        self.transport = transport
        self._error = error
        self._refusals = refusals
        self._answered = False

    def data_received(self, data: bytes) -> None:
        if not self._answered:
            self._answered = True
            self.transport.write(raw_response(self._error, request_id=new_id()))
            self.transport.write_eof()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._refusals.pop(self, None)

    def end(self) -> None:
        """Send the response if it has not been sent, and close."""
        if not self._answered:
            self._answered = True
            self.transport.write(raw_response(self._error, request_id=new_id()))
        self.transport.close()


_REFUSAL_ERRORS = {
    "process": Unavailable("the server has no free connection"),
    "address": RateLimited("too many connections from this address"),
}
LATE_HEAD = HeadTimeout("the head of the request was not complete in time")


def raw_response(error: ServiceError, *, request_id: str) -> bytes:
    """Return the bytes of a whole error response, for a connection whose request is not parsed."""
    response = error_response(error, {})
    assert isinstance(response.body, bytes), "the envelope is encoded JSON"
    response.headers.update(
        {
            "Content-Length": str(len(response.body)),
            "Connection": "close",
            "Server": "parley",
            "X-Request-Id": request_id,
        }
    )
    lines = "\r\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"HTTP/1.1 {response.status} {response.reason}\r\n{lines}\r\n\r\n".encode() + response.body


def limit_unacknowledged(transport: asyncio.Transport) -> None:
    """Have the kernel end the connection when its client acknowledges or reads nothing for 30 s.

    This also applies while the connection is closing. Otherwise unsent data would keep it, and its descriptor, open
    forever.
    """
    socket = transport.get_extra_info("socket")
    if (
        _TCP_USER_TIMEOUT is not None
        and socket is not None
        and socket.family in {sockets.AF_INET, sockets.AF_INET6}
    ):
        socket.setsockopt(sockets.IPPROTO_TCP, _TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)


def _check_descriptors(connections: int) -> None:
    """Log an error if no descriptor is left. Calls that fail for lack of one report other, misleading errors."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        log.error(
            "descriptors.exhausted",
            error=str(error),
            descriptors=_descriptor_limit(),
            connections=connections,
            hint="raise the limit of open files (LimitNOFILE, ulimit -n) or lower PARLEY_CONNECTIONS",
        )
