"""HTTP and WebSocket calls to vendors: responses, timeouts, errors as `VendorError`."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Self, TypeVar

import aiohttp
from pydantic import ValidationError

from streams.loop_time import wait_for_loop_time
from streams.push import Sink
from streams.wire.codec import is_encodable
from streams.wire.ids import REQUEST_ID
from streams.wire.long_integers import loads_exact
from streams.wire.model import Model, faults
from vendors.errors import Garbled
from vendors.http.causes import FAULTS, connect_error, connection_error
from vendors.http.http1.client import Http1Client
from vendors.http.http1.errors import BadHeader
from vendors.http.http1.response import Response
from vendors.http.outgoing import Outgoing
from vendors.http.refusals import error_body, invalid_header, refusal
from vendors.http.retries import with_retry
from vendors.http.sockets import Socket, dial

_DRAIN_S = 0.25
_LARGE_BYTES = 16 * 1024
_MANY_CONTAINERS = 100
"""JSON with fewer objects and lists cannot be nested too deeply."""

M = TypeVar("M", bound=Model)


class VendorHttp:
    """The HTTP client of the process, shared by all vendor clients."""

    def __init__(self, http1: Http1Client, socket_session: aiohttp.ClientSession) -> None:
        self._http1 = http1
        self._socket_session = socket_session
        self.kept: dict[object, OrderedDict[tuple[str, ...], Any]] = {}
        """Values that vendor clients keep between calls, by kind (`vendors/http/kept.py`)."""

    def stream(self, call: Outgoing) -> AbstractAsyncContextManager["Incoming"]:
        """Send a call and return its 2xx response as a context manager. The body is read in the block.

        A call that may be repeated is tried once more if it cannot connect or gets a retryable status (429, 5xx).
        Any other failure raises `VendorError`.
        """
        return Incoming(self, call)

    @asynccontextmanager
    async def websocket(
        self, call: Outgoing, *, heartbeat_s: float | None = None, max_message_bytes: int = 1 << 20
    ) -> AsyncIterator[Socket]:
        """Open a WebSocket, which is closed at the end of the block. `method` and `body` of the call are ignored.

        The handshake must finish within `connect_s` and is tried once more if the call may be repeated.
        `heartbeat_s` detects a dead connection. Do not set it for a socket that is read with pauses, because pongs
        are only seen while reading.
        """
        once = partial(
            dial, self._socket_session, call, heartbeat_s=heartbeat_s, max_message_bytes=max_message_bytes
        )
        socket = Socket(call.vendor, await with_retry(call, once, once))
        try:
            yield socket
        finally:
            await socket.close()

    async def request(self, call: Outgoing, *, again: bool = False) -> Response:
        """Send a call once and return its 2xx response, which the caller closes. `again`: this is the retry."""
        try:
            response = await self._http1.send(
                call.url,
                method=call.method,
                headers=call.sent_headers,
                body=call.body,
                connect_s=call.connect_s,
                repeatable=call.may_repeat and not again,
                public_only=call.public_only,
                request_id=REQUEST_ID.get(),
            )
        except BadHeader:  # Such as a line feed after a pasted key.
            raise invalid_header(call.vendor) from None
        except FAULTS as error:
            raise connect_error(call, error) from error
        if response.status < 300:
            return response
        try:
            raw = await error_body(response.read)
        finally:
            await response.aclose()
        raise refusal(call.vendor, response.status, raw, response.headers)


class Incoming:
    """A vendor's response, as a context manager."""

    __slots__ = ("_call", "_http", "_response", "closed", "vendor")

    def __init__(self, http: VendorHttp, call: Outgoing) -> None:
        self.vendor = call.vendor
        self.closed = False
        """Whether the block has ended. Nothing may be read after that."""
        self._http = http
        self._call = call

    async def __aenter__(self) -> Self:
        call, request = self._call, self._http.request
        self._response = await with_retry(call, partial(request, call), partial(request, call, again=True))
        del self._call  # The request body may be large.
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def content_type(self) -> str:
        return self._response.content_type

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives. Raise `Garbled` or `Unreachable` if it is cut off."""
        while piece := await self.read():
            yield piece

    async def read(self) -> bytes:
        """Return the next part of the body, or `b""` at its end."""
        try:
            piece = await self._response.read()
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error
        if len(piece) > _LARGE_BYTES:
            await wait_for_loop_time()
        return piece

    async def push_to(self, sink: Sink[bytes]) -> bool:
        """Push the body to `sink` as it arrives. Return true if `sink` stopped, false at the end of the body."""
        try:
            return await self._response.push_to(sink)
        except FAULTS as error:
            raise connection_error(self.vendor, error) from error

    async def aclose(self) -> None:
        """Close the response. Its connection is closed too unless the response was read to its end."""
        self.closed = True
        await self._response.aclose()

    async def drain(self) -> None:
        """After the vendor's end mark, wait briefly for the end of the HTTP body, so the connection is reused."""
        if self._response.complete:
            return
        with suppress(*FAULTS):
            async with asyncio.timeout(_DRAIN_S):
                while await self._response.read():
                    pass

    async def json(self, limit_bytes: int = 8 * 1024 * 1024) -> Any:
        raw = bytearray()
        async with aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                raw += piece
                if len(raw) > limit_bytes:
                    raise Garbled(self.vendor, f"sent a response of more than {limit_bytes} bytes")
        try:
            value = loads_exact(bytes(raw))
        except (ValueError, RecursionError):
            raise Garbled(self.vendor, "sent invalid JSON") from None
        if raw.count(b"{") + raw.count(b"[") > _MANY_CONTAINERS and not is_encodable(value):
            raise Garbled(self.vendor, "sent JSON that is nested too deeply")
        return value

    async def value(self, model: type[M]) -> M:
        """Return the JSON body as a model. Raise `Garbled` if it does not fit."""
        try:
            return model.model_validate(await self.json())
        except ValidationError as error:
            path, problem = next(faults(error))
            raise Garbled(self.vendor, f"sent a malformed response: {path or 'body'} {problem}") from None
