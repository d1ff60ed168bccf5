"""The client side of an attack: its users, its source addresses, its connections and the requests they send."""

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
"""Attacks on 127.0.0.1 come from 127.0.0.2 on, so that limits per address spare the witness."""
_REFUSED_S = 1.0
_MOST_REOPENED = 50
_REOPEN_AFTER_S = 0.05
_UNKNOWN_LIMIT = 1_500
_MOST_DESCRIPTORS = 5_000


@dataclass(frozen=True, slots=True)
class Strategies:
    """Names in the app. `speech` answers with about 1 MiB of events, `long_speech` with several."""

    conversation: str
    speech: str
    long_speech: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A stream that has ended and can be read again by its user."""

    token: str
    stream_id: str
    size_bytes: int


def is_loopback(host: str) -> bool:
    """Whether `host` is certainly this machine: a loopback address or `localhost`. No name is looked up."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Attacker:
    """What one attack opens and sends. `for_s`: how long its floods last. `pid`: of the server, 0 where unknown."""

    def __init__(self, target: Target, strategies: Strategies, *, for_s: float, pid: int = 0) -> None:
        parts = urlsplit(target.url)
        self.strategies = strategies
        self.tokens: Sequence[str] = target.tokens
        self.for_s = for_s
        self.connections: list[Connection] = []
        self.refused: Counter[str] = Counter()
        self.finished: list[Finished] = []
        """Streams made in the preparation of an attack."""
        self.requests = 0
        """Whole requests sent, where the attack counts them."""
        self.victims_failed: list[str] = []
        """Requests of other users that an attack makes itself: why each of those that failed did."""
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._app_id = target.app_id
        self._pid = pid

    @property
    def many_addresses(self) -> bool:
        """Whether it may come from several addresses: only over IPv4's loopback network."""
        return self._host.startswith("127.")

    def descriptors(self) -> int:
        """How many connections exhaust the server's descriptors, at most 5,000."""
        if not self._pid:
            return _UNKNOWN_LIMIT
        lines = Path(f"/proc/{self._pid}/limits").read_text().splitlines()
        soft = next(line.split()[3] for line in lines if line.startswith("Max open files"))
        return min(int(soft), _MOST_DESCRIPTORS) if soft.isdecimal() else _MOST_DESCRIPTORS

    async def connect(self, *, address: int = 0, receive_bytes: int = 0) -> Connection | None:
        """Open a connection from source address number `address`; None where it is refused."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            self.refused[f"by this process's own limit: {error.strerror}"] += 1
            return None
        try:
            if receive_bytes:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            if self.many_addresses:
                made.bind((f"127.0.0.{_FIRST_HOST + address}", 0))
            async with asyncio.timeout(_CONNECT_S):
                await asyncio.get_running_loop().sock_connect(made, (self._host, self._port))
        except OSError as error:  # a TimeoutError is one
            made.close()
            self.refused[errno.errorcode.get(error.errno or errno.ETIMEDOUT, str(error))] += 1
            return None
        self.connections.append(connection := Connection(made))
        return connection

    def head(self, method: str, path: str, *, token: str = "", headers: Mapping[str, str] | None = None) -> bytes:
        """The head of a request without the empty line at its end."""
        fields = {"Host": f"{self._host}:{self._port}", **(headers or {})}
        if token:
            fields |= {"X-Service-App-Id": self._app_id, "X-Service-Session-Token": token}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}".encode()

    def upload(self, number: int, *, kind: str = "audio", parameters: bytes | None = None) -> bytes:
        """The beginning of a conversation by user `number`: its parameters, and no input yet."""
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
        """A whole request for speech by user `number`."""
        body = dumps({"strategies": [strategy], "text": "How are you today?"})
        length = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return self.head("POST", "/bp/ai/audio/tts", token=self.token(number), headers=length) + b"\r\n" + body

    def token(self, number: int) -> str:
        return self.tokens[number % len(self.tokens)]

    def look(self) -> None:
        """See what the server did with each connection."""
        for connection in self.connections:
            connection.look()

    @property
    def open_connections(self) -> int:
        """How many are open, of those old enough that the server would have closed what it refuses."""
        before = time.monotonic() - _REFUSED_S
        return sum(connection.is_open and connection.opened_at < before for connection in self.connections)

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


CHUNKED = {"Transfer-Encoding": "chunked"}


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


async def for_at_most(limit_s: float, work: Awaitable[None]) -> None:
    """Do `work`, and stop it after `limit_s`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await work


async def together(times: int, one: Callable[[int], Awaitable[None]]) -> None:
    """Run `one(0)` to `one(times - 1)` side by side."""
    async with asyncio.TaskGroup() as tasks:
        for number in range(times):
            tasks.create_task(_awaited(one(number)))


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def repeat(attacker: Attacker, connections: int, *, begin: Sequence[bytes], then: Sequence[bytes]) -> None:
    """Over each of `connections`, send its beginning, then its piece again and again for the attack's time.

    Connection number `n` sends item `n` of each sequence, modulo its length. It reads no answers. A connection that
    the server closes is opened again, at most 50 times.
    """

    async def one(number: int) -> None:
        first, piece = begin[number % len(begin)], then[number % len(then)]
        for _ in range(_MOST_REOPENED):
            connection = await attacker.connect()
            if connection is not None and await connection.send(first):
                while await connection.send(piece):
                    pass
            await asyncio.sleep(_REOPEN_AFTER_S)

    await for_at_most(attacker.for_s, together(connections, one))
