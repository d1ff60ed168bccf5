"""A WebSocket of the sandbox. A task reads it all the time, so that a client's close is noticed immediately."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import WSMsgType, web

from streams.tasks import background
from vendors.sandbox.flow import Close, Frame

_MAX_WAITING = 4_096


class ClientLeft(Exception):
    """The client has closed the socket."""


class Socket:
    """Receives messages with `receive()`. The call's `Flow` sends messages through the other methods."""

    def __init__(self, response: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.response = response
        self._transport = transport
        self._is_cut = False
        self._messages: asyncio.Queue[Frame | None] = asyncio.Queue(_MAX_WAITING)
        self._left = asyncio.Event()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        async with background(self._read()):
            yield

    async def receive(self) -> Frame:
        """Return the next message, text or bytes. Raise `ClientLeft` if the client has closed the socket."""
        message = await self._messages.get()
        if message is None:
            raise ClientLeft
        return message

    async def send(self, frame: Frame) -> None:
        if self._left.is_set():
            raise ClientLeft
        if isinstance(frame, str):
            await self.response.send_str(frame)
        else:
            await self.response.send_bytes(frame)

    async def pause(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._left.wait()
        except TimeoutError:
            return
        raise ClientLeft

    async def close(self, close: Close) -> None:
        """Close the socket, unless the connection has been cut."""
        if not self._is_cut:
            await self.response.close(code=close.code, message=close.reason.encode())

    def cut(self) -> None:
        self._is_cut = True
        if self._transport is not None:
            self._transport.close()

    async def _read(self) -> None:
        async for message in self.response:
            if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
                await self._messages.put(message.data)
        self._left.set()
        await self._messages.put(None)
