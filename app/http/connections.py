"""The open connections of this process: how many there may be, and how long a client may take to send a head.

A connection that is not admitted is answered, because a client that finds it closed cannot tell why.
"""

import asyncio
import os
import resource
import socket as sockets
from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from app.http.errors import error_response
from app.http.limits import is_trusted, network_of
from app.settings import Settings
from streams.metrics import Counts, Levels
from streams.wire.errors import InvalidParameter, ServiceError
from streams.wire.ids import new_id

log = structlog.get_logger()

OPEN = Levels("parley_connections", "Open connections of clients", [])
REFUSED = Counts(
    "parley_connections_refused", "Connections that were not admitted, by the bound they met", ["bound"]
)

_UNBOUNDED = 1_000_000
_KEPT_BACK = 1_000
_SWEEP_S = 1.0
_REFUSAL_S = 2.0
_REFUSALS_AT_ONCE = 128
_UNACKNOWLEDGED_MS = 30_000
_TCP_USER_TIMEOUT: int | None = getattr(sockets, "TCP_USER_TIMEOUT", None)
"""Linux alone has it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a process grants its clients.

    `connections` is for all of them, `per_address` for one IPv4 address or one /64 of IPv6. The networks of
    `trusted_proxies` are exempt from the latter. `head_s` runs from the first byte of a head, on a new connection
    from its opening. `keep_alive_s` is for a connection that waits for its next request.
    """

    connections: int = _UNBOUNDED
    per_address: int = _UNBOUNDED
    trusted_proxies: tuple[str, ...] = ()
    head_s: float = 10
    keep_alive_s: float = 75

    @classmethod
    def of(cls, settings: Settings) -> "Bounds":
        """The bounds of the public port, within the descriptors that this process may open."""
        descriptors = _descriptor_limit()
        most = _most_connections(descriptors)
        wanted = settings.connections
        if wanted is not None and wanted > most:
            log.warning(
                "connections.capped",
                variable="PARLEY_CONNECTIONS",
                configured=wanted,
                connections=most,
                descriptors=descriptors,
                hint="raise the limit of open files (LimitNOFILE, ulimit -n)",
            )
        return cls(
            connections=min(most, wanted or most),
            per_address=settings.connections_per_address,
            trusted_proxies=settings.trusted_proxies,
            keep_alive_s=settings.keep_alive_s,
        )


def _descriptor_limit() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNBOUNDED * 2 if limit == resource.RLIM_INFINITY else limit


def _most_connections(descriptors: int) -> int:
    """Half of what stores and files leave, because a stream takes a connection to its vendor as well."""
    return max(1, (descriptors - min(_KEPT_BACK, descriptors // 4)) // 2)


class Connection(Protocol):
    """What is asked of a connection that was admitted."""

    network: str
    """Whom it is counted for; empty: nobody."""
    awaits_head: bool
    """Whether a head is due, of which some may have come."""
    head_began: bool
    """Whether some of it has come. Defined while `awaits_head` is true."""

    def end_for_late_head(self) -> None:
        """Close, with an answer where some of the head has come."""


class Connections:
    """Admits connections, counts them and ends those whose head is late, by one timer for all."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._open = 0
        self._by_network: Counter[str] = Counter()
        self._late_at: dict[Connection, float] = {}
        """By connection: the loop's time when its head is late. Ordered by that time."""
        self._refusals: dict[_Refusal, float] = {}
        """The same for clients that are being told why they are not admitted."""
        self._untold: Counter[str] = Counter()
        """Refusals by bound since the last log line."""
        self._last_refused = ""
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, connection: Connection, transport: asyncio.Transport) -> bool:
        """Whether `connection` may stay. Otherwise `transport` has another protocol, which answers and closes."""
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
        """Forget a connection that was admitted and is closed."""
        self._late_at.pop(connection, None)
        self._open -= 1
        OPEN.add(-1)
        if network := connection.network:
            self._by_network[network] -= 1
            if not self._by_network[network]:
                del self._by_network[network]

    def head_continues(self, connection: Connection, *, whole: bool) -> None:
        """Some of a head has come, or all of it (`whole`)."""
        if whole:
            self._late_at.pop(connection, None)
            connection.awaits_head = False
            return
        if not connection.awaits_head:
            self._await_head(connection)
        connection.head_began = True

    def close(self) -> None:
        """Stop the timer, and end what is being refused."""
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
        """Whom the connection is counted for: by the address of the socket, which a client cannot choose."""
        if self.bounds.per_address >= _UNBOUNDED:
            return ""
        peer = transport.get_extra_info("peername")
        if not isinstance(peer, tuple) or is_trusted(peer[0], self.bounds.trusted_proxies):
            return ""
        return network_of(peer[0])

    def _refuse(self, transport: asyncio.Transport, bound: str, network: str) -> None:
        REFUSED.add(1, bound)
        self._untold[bound] += 1
        self._last_refused = network
        refusal = _Refusal(transport, _ANSWERS[bound], self._refusals)
        transport.set_protocol(refusal)
        if len(self._refusals) >= _REFUSALS_AT_ONCE:
            refusal.end()  # each takes a descriptor: under a flood some clients see a reset instead
        else:
            self._refusals[refusal] = asyncio.get_running_loop().time() + _REFUSAL_S

    def _keep_sweeping(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """End what is late, at the cost of what ends, however many connections are open.

        A head that came while the loop was busy is not late: uvloop reads before it runs timers.
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
        if self._untold:
            log.warning(
                "connections.refused",
                count=self._untold.total(),
                by_bound=dict(self._untold),
                last_address=self._last_refused,
                open=self._open,
                connections=self.bounds.connections,
                connections_per_address=self.bounds.per_address,
            )
            self._untold.clear()


def _due(times: dict[Any, float], now: float) -> list[Any]:
    """Those whose time has come, of a dict that is ordered by time."""
    found = []
    for each, due in times.items():
        if due > now:
            break
        found.append(each)
    return found


class _Refusal(asyncio.Protocol):
    """Answers a connection that was not admitted.

    The answer waits for the first bytes of a request: clients discard what comes before they have asked. Closing a
    socket with unread bytes would reset the connection and lose the answer, so the rest of the request is read.
    """

    def __init__(
        self, transport: asyncio.Transport, error: ServiceError, under_way: dict["_Refusal", float]
    ) -> None:
        self.transport = transport
        self._error = error
        self._under_way = under_way
        self._answered = False

    def data_received(self, data: bytes) -> None:
        if not self._answered:
            self._answered = True
            self.transport.write(raw_answer(self._error, request_id=new_id()))
            self.transport.write_eof()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._under_way.pop(self, None)

    def end(self) -> None:
        """Answer where that has not happened, and close."""
        if not self._answered:
            self._answered = True
            self.transport.write(raw_answer(self._error, request_id=new_id()))
        self.transport.close()


_ANSWERS = {
    "process": ServiceError(
        "the server has as many connections as it can hold",
        error_type="backend unavailable",
        status_hint=503,
        retry_after_s=1,
        extra={"retryable": True},
    ),
    "address": ServiceError("too many connections from this address", error_type="api_rate_limit", retry_after_s=1),
}
LATE_HEAD = InvalidParameter("the head of the request was not complete in time", status_hint=408)


def raw_answer(error: ServiceError, *, request_id: str) -> bytes:
    """The bytes of a whole answer, for a connection whose request is not parsed."""
    response = error_response(error)
    assert isinstance(response.body, bytes), "the envelope is made of bytes"
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
    """Have the kernel end a connection whose client acknowledges nothing, or takes nothing, for so long.

    That holds while it is being closed too: what is unsent then would keep it, and its descriptor, forever.
    """
    socket = transport.get_extra_info("socket")
    if (
        _TCP_USER_TIMEOUT is not None
        and socket is not None
        and socket.family in {sockets.AF_INET, sockets.AF_INET6}
    ):
        socket.setsockopt(sockets.IPPROTO_TCP, _TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)


def _check_descriptors(connections: int) -> None:
    """Log it where this process can open nothing more: whoever needs a descriptor reports another fault."""
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
