"""WebSockets of vendors: the handshake, the messages, and the close frame."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from http import HTTPStatus

import aiohttp

from streams.wire.ids import REQUEST_ID
from vendors.errors import Garbled
from vendors.http.causes import FAULTS, connect_error, connection_error
from vendors.http.outgoing import Outgoing
from vendors.http.refusals import error_body, invalid_header, refusal

_CLOSE_S = 0.1


class Socket:
    """A vendor's WebSocket.

    After `messages` has ended, `close_code` and `close_reason` are those of the vendor's close frame. The code is
    1006 if the vendor sent none.
    """

    def __init__(self, vendor: str, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.vendor = vendor
        self.close_code = 1006
        self.close_reason = ""
        self._socket = socket

    async def send(self, message: str | bytes) -> None:
        try:
            if isinstance(message, str):
                await self._socket.send_str(message)
            else:
                await self._socket.send_bytes(message)
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error

    async def messages(self) -> AsyncGenerator[str | bytes]:
        """Yield the vendor's messages until the socket is closed by either side."""
        try:
            while True:
                message = await self._socket.receive()
                if message.type in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}:
                    yield message.data
                elif message.type is aiohttp.WSMsgType.CLOSE:
                    self.close_code, self.close_reason = message.data, message.extra or ""
                    return
                elif message.type is not aiohttp.WSMsgType.ERROR:
                    return
                elif isinstance(message.data, aiohttp.WebSocketError):
                    raise Garbled(self.vendor, "sent a message that is too large or invalid") from None
                else:
                    raise message.data
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error

    async def close(self) -> None:
        """Close the socket, waiting only briefly for the vendor. A running `messages` iterator ends."""
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_CLOSE_S * 2):
                await self._socket.close()


async def dial(
    session: aiohttp.ClientSession, call: Outgoing, *, heartbeat_s: float | None, max_message_bytes: int
) -> aiohttp.ClientWebSocketResponse:
    """Open a WebSocket once. The middlewares of `session` must include `socket_or_error`."""
    request_id = REQUEST_ID.get()
    try:
        async with asyncio.timeout(call.connect_s):
            return await session.ws_connect(
                call.url,
                headers={**call.sent_headers, "X-Request-Id": request_id} if request_id else call.sent_headers,
                heartbeat=heartbeat_s,
                max_msg_size=max_message_bytes,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
            )
    except _NoSocketError as error:
        raise refusal(call.vendor, *error.args) from None
    except _ConnectionLostError as error:
        raise connect_error(call, error.error) from error.error
    except FAULTS as error:
        raise connect_error(call, error) from error
    except ValueError:
        raise invalid_header(call.vendor) from None


class _NoSocketError(Exception):
    """A handshake was refused. Carries the status, the body and the headers of the response."""


class _ConnectionLostError(Exception):
    """Wraps a connection error so that aiohttp does not recognize it and send the handshake again."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(str(error))
        self.error = error


async def socket_or_error(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Read the error of a refused handshake. Do not follow redirects, which would send the key to another host.

    aiohttp sends a GET again after a lost connection, even over a new one, and has no setting to turn this off.
    `vendors/http/retries.py` decides whether a handshake is repeated.
    """
    try:
        response = await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _ConnectionLostError(error) from error
    if response.status == HTTPStatus.SWITCHING_PROTOCOLS:
        if response.connection is None or response.connection.transport is None:
            # Otherwise aiohttp asserts that the connection was not lost meanwhile.
            raise _ConnectionLostError(aiohttp.ServerDisconnectedError())
        return response
    try:
        raise _NoSocketError(response.status, await error_body(response.content.readany), response.headers)
    finally:
        response.close()
