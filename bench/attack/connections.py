"""Raw client connections of an attack, and what the server did with each of them."""

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
    """One connection. `look` notes what the server did, and reads nothing from the socket."""

    __slots__ = ("_loop", "_socket", "closed_at", "left", "opened_at", "status", "was_reset")

    def __init__(self, connected: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = connected
        self.opened_at = time.monotonic()
        self.closed_at = 0.0
        """When the server was seen to have closed it; 0: it has not."""
        self.left = False
        """Whether the attack closed it first."""
        self.was_reset = False
        """Whether the attack reset it, as its way to attack."""
        self.status = ""
        """Of the first answer."""

    @property
    def is_open(self) -> bool:
        return not self.left and not self.closed_at

    def look(self) -> None:
        if not self.is_open:
            return
        if not self.status:
            self._peek()
        if self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _ESTABLISHED:
            self.closed_at = time.monotonic()

    def _peek(self) -> None:
        try:
            first = self._socket.recv(_STATUS_BYTES, socket.MSG_PEEK)
        except OSError:  # nothing has arrived, or the connection was reset
            return
        if len(first) == _STATUS_BYTES:
            self.status = first[-3:].decode(errors="replace")

    async def send(self, data: bytes) -> bool:
        """Send all of `data`; False where the connection is closed."""
        try:
            await self._loop.sock_sendall(self._socket, data)
        except OSError:
            self.look()
            self.closed_at = self.closed_at or time.monotonic()
            return False
        return True

    async def receive(self) -> bytes:
        """The next bytes; none where the connection is closed."""
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
        """All bytes up to those that end in `end`, or up to the connection's end."""
        received = bytearray()
        while data := await self.receive():
            received += data
            if received.endswith(end):
                break
        return bytes(received)

    def close(self) -> None:
        """Close it and free its socket."""
        if self.is_open:
            self.look()
        self.left = self.is_open
        self._socket.close()

    def reset(self) -> None:
        """Close it by a RST: nothing that is still to be sent is sent, and the server reads an error."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self.close()
        self.was_reset = self.left


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of an attack's connections."""

    opened: int = 0
    still_open: int = 0
    """When the attack ended, or when the attack itself closed them."""
    closed_after_s: tuple[float, float] | None = None
    """The shortest and the longest life of those that the server closed."""
    reset: int = 0
    """By the attack itself."""
    refused: dict[str, int] = field(default_factory=dict)
    """Connections that were never made, by the reason."""
    statuses: dict[str, int] = field(default_factory=dict)
    """Of the first answer on each connection."""

    @classmethod
    def of(cls, connections: Iterable[Connection], refused: Counter[str]) -> "Outcomes":
        made = list(connections)
        lives_s = [one.closed_at - one.opened_at for one in made if one.closed_at]
        resets = sum(one.was_reset for one in made)
        statuses = Counter(one.status for one in made if one.status)
        return cls(
            opened=len(made),
            still_open=len(made) - len(lives_s) - resets,
            closed_after_s=(min(lives_s), max(lives_s)) if lives_s else None,
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
                "answers: " + ", ".join(f"{count:,} of {status}" for status, count in self.statuses.items())
            )
        return "; ".join(parts)
