"""Raw client connections of an attack, and their outcomes."""

import asyncio
import socket
import struct
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_ESTABLISHED = 1
"""The state of an open connection in Linux's `struct tcp_info`."""
_LINGER_NONE = struct.pack("ii", 1, 0)
_STATUS_BYTES = len("HTTP/1.1 200")
_READ_BYTES = 256 * 1024


class Connection:
    """One connection. `update()` updates its state without reading from the socket."""

    __slots__ = ("_loop", "_socket", "closed_at", "closed_by_attack", "opened_at", "status", "was_reset")

    def __init__(self, connected: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = connected
        self.opened_at = time.monotonic()
        self.closed_at = 0.0
        """When the server's close was noticed; 0 while the connection is open."""
        self.closed_by_attack = False
        """Whether the attack closed it before the server."""
        self.was_reset = False
        """Whether the attack closed it with a TCP reset."""
        self.status = ""
        """The status code of the first response, as text; empty before it arrives."""

    @property
    def is_open(self) -> bool:
        return not self.closed_by_attack and not self.closed_at

    def update(self) -> None:
        if not self.is_open:
            return
        if not self.status:
            self._peek()
        if self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED:
            self.closed_at = time.monotonic()

    def _peek(self) -> None:
        try:
            first = self._socket.recv(_STATUS_BYTES, socket.MSG_PEEK)
        except OSError:  # Nothing has arrived, or the connection was reset.
            return
        if len(first) == _STATUS_BYTES:
            self.status = first[-3:].decode(errors="replace")

    async def send(self, data: bytes) -> bool:
        """Send all of `data`. Return False if the connection is closed."""
        try:
            await self._loop.sock_sendall(self._socket, data)
        except OSError:
            self.update()
            self.closed_at = self.closed_at or time.monotonic()
            return False
        return True

    async def receive(self) -> bytes:
        """Return the next bytes, or `b""` if the connection is closed."""
        if not self.status:
            self._peek()
        try:
            data = await self._loop.sock_recv(self._socket, _READ_BYTES)
        except OSError:
            data = b""
        if not self.status and len(data) >= _STATUS_BYTES:
            self.status = data[_STATUS_BYTES - 3 : _STATUS_BYTES].decode(errors="replace")
        if not data:
            self.closed_at = self.closed_at or time.monotonic()
        return data

    async def receive_until(self, end: bytes) -> bytes:
        """Return all bytes up to a read that ends with `end`, or up to the end of the connection."""
        received = bytearray()
        while data := await self.receive():
            received += data
            if received.endswith(end):
                break
        return bytes(received)

    def close(self) -> None:
        """Close the connection and its socket."""
        if self.is_open:
            self.update()
        self.closed_by_attack = self.is_open
        self._socket.close()

    def reset(self) -> None:
        """Close the connection with a TCP reset. Buffered data is discarded, and the server reads an error."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self.close()
        self.was_reset = self.closed_by_attack


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of an attack's connections."""

    opened: int = 0
    still_open: int = 0
    """Connections that the server had not closed when the attack ended or closed them."""
    closed_after_s: tuple[float, float] | None = None
    """The shortest and the longest lifetime of the connections that the server closed."""
    reset: int = 0
    """Connections that the attack itself reset."""
    refused: dict[str, int] = field(default_factory=dict)
    """Connections that could not be opened, by reason."""
    statuses: dict[str, int] = field(default_factory=dict)
    """Number of connections by the status code of their first response."""

    @classmethod
    def of(cls, connections: Iterable[Connection], refused: Counter[str]) -> "Outcomes":
        connection_list = list(connections)
        lifetimes_s = [
            connection.closed_at - connection.opened_at for connection in connection_list if connection.closed_at
        ]
        resets = sum(connection.was_reset for connection in connection_list)
        statuses = Counter(connection.status for connection in connection_list if connection.status)
        return cls(
            opened=len(connection_list),
            still_open=len(connection_list) - len(lifetimes_s) - resets,
            closed_after_s=(min(lifetimes_s), max(lifetimes_s)) if lifetimes_s else None,
            reset=resets,
            refused=dict(refused),
            statuses=dict(statuses.most_common()),
        )

    def __str__(self) -> str:
        parts = [f"{self.opened:,} opened"]
        if self.reset:
            parts.append(f"{self.reset:,} reset by the attack")
        if self.still_open:
            parts.append(f"{self.still_open:,} never closed by the server")
        if self.closed_after_s is not None:
            shortest_s, longest_s = self.closed_after_s
            parts.append(
                f"{self.opened - self.still_open - self.reset:,} closed after {shortest_s:.1f} to {longest_s:.1f} s"
            )
        parts += [f"{count:,} refused ({reason})" for reason, count in self.refused.items()]
        if self.statuses:
            parts.append(
                "responses: "
                + ", ".join(f"{count:,} with status {status}" for status, count in self.statuses.items())
            )
        return "; ".join(parts)
