"""Accepts the connections of one listening socket, a few per iteration of the event loop."""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress

import structlog

from streams.tasks import background

log = structlog.get_logger()

_CONNECTIONS_PER_ITERATION = 16
"""Opening so many connections takes about 2 ms."""
_NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_AFTER_S = 1.0
_HINT = "raise the limit of open files (LimitNOFILE, ulimit -n) or lower PARLEY_CONNECTIONS"


class Acceptor:
    """Accepts connections from `listener` between `start` and `stop`.

    libuv's own listeners accept until no connection waits. During a flood, this takes 100 ms and more in one
    iteration of the event loop, during which no stream sends anything.
    """

    def __init__(self, listener: socket.socket, make_protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        self._listener = listener
        listener.settimeout(0)
        self._make_protocol = make_protocol
        self._wake = asyncio.Event()
        self._stopping = False
        self._task = background(self._run())

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        """Close `listener`. Open all accepted connections first, so that none is reset."""
        self._stopping = True
        self._wake.set()
        await self._task.end_within(_RETRY_AFTER_S)
        self._listener.close()

    async def _run(self) -> None:
        while await self._is_readable():
            connections, out_of_resources = _accept(self._listener)
            await _open(connections, self._make_protocol)
            if out_of_resources:
                await self._wait(_RETRY_AFTER_S)

    async def _is_readable(self) -> bool:
        """Wait until a connection waits. Return `False` if `stop` was called."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._listener, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            loop.remove_reader(self._listener)
        self._wake.clear()
        return not self._stopping

    async def _wait(self, wait_s: float) -> None:
        """Wait, but not longer than until `stop`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()


async def accept_waiting(
    listener: socket.socket, make_protocol: Callable[[], asyncio.BaseProtocol], *, until_s: float
) -> None:
    """Accept connections until none waits, or until `until_s` in the event loop's time, and close `listener`.

    It is closed immediately after no connection was found, because the kernel resets those that arrive in between.
    """
    clock = asyncio.get_running_loop().time
    while clock() < until_s and (connections := _accept(listener)[0]):
        await _open(connections, make_protocol)
    listener.close()


def _accept(listener: socket.socket) -> tuple[list[socket.socket], bool]:
    """Return accepted connections, and whether the system lacks resources for another one."""
    connections: list[socket.socket] = []
    for _ in range(_CONNECTIONS_PER_ITERATION):
        try:
            connections.append(listener.accept()[0])
        except BlockingIOError:
            break
        except OSError as error:
            if error.errno in _NO_RESOURCES:
                log.error("connections.not_accepted", error=error.strerror, hint=_HINT)
                return connections, True
    return connections, False


async def _open(connections: list[socket.socket], make_protocol: Callable[[], asyncio.BaseProtocol]) -> None:
    await asyncio.gather(*(_open_one(connection, make_protocol) for connection in connections))


async def _open_one(connection: socket.socket, make_protocol: Callable[[], asyncio.BaseProtocol]) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(make_protocol, connection)
    except OSError:  # The client has closed the connection.
        connection.close()
    except Exception:
        log.exception("connection.not_opened")
        connection.close()
