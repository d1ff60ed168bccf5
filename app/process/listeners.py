"""The listening sockets of a server process, from some of which it accepts connections."""

import asyncio
import socket
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import Self

from aiohttp import web

from app.process.acceptor import Acceptor, accept_waiting

_ACCEPT_WAITING_S = 1


class Listeners:
    """Accepts connections from a changing subset of `sockets`. The other sockets stay open.

    Each acceptor has a duplicate of its socket. Closing the duplicate does not reset connections that wait to be
    accepted, as long as another process has the socket open.
    """

    def __init__(
        self,
        sockets: Mapping[str, Sequence[socket.socket]],
        runner: web.AppRunner,
        *,
        runners: Mapping[str, web.AppRunner],
    ) -> None:
        """`runners` maps names of sockets to their runners. All other sockets are served by `runner`."""
        self._sockets = sockets
        self._runner = runner
        self._runners = runners
        self._acceptors: dict[str, list[Acceptor]] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def accept_from(self, names: Collection[str]) -> None:
        """Accept connections from the listeners `names` and no others. Does nothing after `close`."""
        for name in () if self._closed else names:
            if name not in self._acceptors:
                server = self._server(name)
                self._acceptors[name] = [Acceptor(listening.dup(), server) for listening in self._sockets[name]]
                for acceptor in self._acceptors[name]:
                    acceptor.start()
        for name in self._acceptors.keys() - set(names):
            for acceptor in self._acceptors.pop(name):
                await acceptor.stop()

    async def accept_waiting_and_close(self) -> None:
        """Close all sockets. Accept the connections that wait at them first, for at most a second.

        Once the parent has ended, no other process accepts them, and the kernel resets them when the last process
        closes the socket.
        """
        self._closed = True
        await self.accept_from(())
        until_s = asyncio.get_running_loop().time() + _ACCEPT_WAITING_S
        for name, sockets in self._sockets.items():
            for listener in sockets:
                await accept_waiting(listener, self._server(name), until_s=until_s)

    async def close(self) -> None:
        """Stop accepting connections and close all sockets."""
        self._closed = True
        await self.accept_from(())
        for sockets in self._sockets.values():
            for listener in sockets:
                listener.close()

    def _server(self, name: str) -> web.Server:
        runner = self._runners.get(name, self._runner)
        assert runner.server is not None, "the runner is set up"
        return runner.server
