"""The listening sockets of a server process, and those of them from which it accepts connections."""

import socket
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import Self

from aiohttp import web

from app.process.sockets import BACKLOG


class Listeners:
    """Accepts connections from a changing subset of `sockets`. The other sockets stay open.

    Each site listens on a duplicate of its socket. Closing the duplicate does not reset connections that wait to be
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
        self._sites: dict[str, list[web.SockSite]] = {}
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
            if name not in self._sites:
                runner = self._runners.get(name, self._runner)
                sites = self._sites[name] = [
                    web.SockSite(runner, listener.dup(), backlog=BACKLOG) for listener in self._sockets[name]
                ]
                for site in sites:
                    await site.start()
        for name in self._sites.keys() - set(names):
            for site in self._sites.pop(name):
                await site.stop()

    async def close(self) -> None:
        """Stop accepting connections and close all sockets."""
        self._closed = True
        await self.accept_from(())
        for sockets in self._sockets.values():
            for listener in sockets:
                listener.close()
