"""The client side of an attack: users, source addresses, connections and requests."""

import asyncio
import errno
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from bench.attack.connections import Connection
from bench.client import Target
from streams.wire.codec import dumps

_CONNECT_S = 5.0
_FIRST_HOST = 2
"""Attacks on 127.0.0.1 use 127.0.0.2 and higher, so that limits per address do not affect the healthy clients."""
_REFUSED_S = 1.0
_MAX_REOPENED = 50
_REOPEN_AFTER_S = 0.05
_UNKNOWN_LIMIT = 1_500
_MAX_DESCRIPTORS = 5_000


@dataclass(frozen=True, slots=True)
class Strategies:
    """Names of strategies. `speech` answers with about 1 MiB of events, `long_speech` with several MiB."""

    conversation: str
    speech: str
    long_speech: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A stream that has ended and that its user can still read."""

    token: str
    stream_id: str
    size_bytes: int


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address or `localhost`. Other names are not resolved."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Attacker:
    """The connections and requests of one attack.

    `for_s` is the length of its floods. `pid` is the server's process id, 0 if unknown.
    """

    def __init__(self, target: Target, strategies: Strategies, *, for_s: float, pid: int = 0) -> None:
        parts = urlsplit(target.url)
        self.strategies = strategies
        self.tokens: Sequence[str] = target.tokens
        self.for_s = for_s
        self.connections: list[Connection] = []
        self.refused: Counter[str] = Counter()
        self.finished: list[Finished] = []
        """Streams that were created to prepare the attack."""
        self.requests = 0
        """Number of complete requests, if the attack counts them."""
        self.victims_failed: list[str] = []
        """The reasons why requests failed that the attack made in the name of other users."""
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._app_id = target.app_id
        self._pid = pid

    @property
    def many_addresses(self) -> bool:
        """Whether the attack can use several source addresses, which only the IPv4 loopback network allows."""
        return self._host.startswith("127.")

    def descriptors(self) -> int:
        """Return how many connections exhaust the server's descriptors, at most 5,000."""
        if not self._pid:
            return _UNKNOWN_LIMIT
        lines = Path(f"/proc/{self._pid}/limits").read_text().splitlines()
        soft = next(line.split()[3] for line in lines if line.startswith("Max open files"))
        return min(int(soft), _MAX_DESCRIPTORS) if soft.isdecimal() else _MAX_DESCRIPTORS

    async def connect(self, *, address: int = 0, receive_bytes: int = 0) -> Connection | None:
        """Open a connection from source address number `address`. Return None if it is refused."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            self.refused[f"limit of this process: {error.strerror}"] += 1
            return None
        try:
            if receive_bytes:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            if self.many_addresses:
                sock.bind((f"127.0.0.{_FIRST_HOST + address}", 0))
            async with asyncio.timeout(_CONNECT_S):
                await asyncio.get_running_loop().sock_connect(sock, (self._host, self._port))
        except OSError as error:  # TimeoutError is a subclass of OSError.
            sock.close()
            self.refused[errno.errorcode.get(error.errno or errno.ETIMEDOUT, str(error))] += 1
            return None
        self.connections.append(connection := Connection(sock))
        return connection

    def head(self, method: str, path: str, *, token: str = "", headers: Mapping[str, str] | None = None) -> bytes:
        """Return the head of a request, without the empty line at its end."""
        fields = {"Host": f"{self._host}:{self._port}", **(headers or {})}
        if token:
            fields |= {"X-Service-App-Id": self._app_id, "X-Service-Session-Token": token}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}".encode()

    def upload(self, number: int, *, kind: str = "audio", parameters: bytes | None = None) -> bytes:
        """Return the beginning of a conversation request by user `number`: head and parameters, without input."""
        head = self.head("POST", "/bp/ai/conversation", token=self.token(number), headers=CHUNKED)
        return head + b"\r\n" + chunk(self.parameters(kind) if parameters is None else parameters)

    def parameters(self, kind: str) -> bytes:
        return dumps(
            {
                "strategies": [self.strategies.conversation],
                "type": kind,
                "language_code": "en-US",
                "target_language_code": "en-US",
            }
        )

    def speak(self, strategy: str, number: int) -> bytes:
        """Return a complete speech request by user `number`."""
        body = dumps({"strategies": [strategy], "text": "How are you today?"})
        length = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return self.head("POST", "/bp/ai/audio/tts", token=self.token(number), headers=length) + b"\r\n" + body

    def token(self, number: int) -> str:
        return self.tokens[number % len(self.tokens)]

    def update(self) -> None:
        """Update the state of each connection."""
        for connection in self.connections:
            connection.update()

    @property
    def open_connections(self) -> int:
        """Number of open connections that are more than 1 s old.

        The server has had the time to close those that it refuses.
        """
        before = time.monotonic() - _REFUSED_S
        return sum(connection.is_open and connection.opened_at < before for connection in self.connections)

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


CHUNKED = {"Transfer-Encoding": "chunked"}
LAST_CHUNK = b"\r\n0\r\n\r\n"
"""The end of a chunked response."""


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


async def for_at_most(limit_s: float, work: Awaitable[None]) -> None:
    """Await `work`, and cancel it after `limit_s`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await work


async def together(times: int, worker: Callable[[int], Awaitable[None]]) -> None:
    """Run `worker(0)` to `worker(times - 1)` concurrently."""
    async with asyncio.TaskGroup() as tasks:
        for number in range(times):
            tasks.create_task(_await(worker(number)))


async def _await(work: Awaitable[None]) -> None:
    await work


async def repeat(attacker: Attacker, connections: int, *, begin: Sequence[bytes], then: Sequence[bytes]) -> None:
    """Flood the server over `connections` connections for the attack's time, without reading responses.

    Connection number `n` sends item `n` of `begin` once, then item `n` of `then` repeatedly, each modulo the length
    of the sequence. A connection that the server closes is opened again, at most 50 times.
    """

    async def worker(number: int) -> None:
        first, piece = begin[number % len(begin)], then[number % len(then)]
        for _ in range(_MAX_REOPENED):
            connection = await attacker.connect()
            if connection is not None and await connection.send(first):
                while await connection.send(piece):
                    pass
            await asyncio.sleep(_REOPEN_AFTER_S)

    await for_at_most(attacker.for_s, together(connections, worker))
