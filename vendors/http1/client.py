"""A client of HTTP/1.1 for answers that come in many small parts: whole bodies or chunks out, bytes in.

It follows no redirect, keeps no cookie, knows no proxy and asks for bodies as they are. Not for `HEAD`.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache

from aiohappyeyeballs import start_connection
from aiohttp.abc import AbstractResolver

from streams.tasks import background
from vendors.http1.connection import Connection
from vendors.http1.errors import ConnectTimeout
from vendors.http1.lookup import Lookup
from vendors.http1.pool import Pool
from vendors.http1.request import Origin, address_of, head_of
from vendors.http1.response import Response

_SECOND_ADDRESS_S = 0.25
"""So long the first address of a name has before the next is tried beside it."""


class Http1Client:
    """Connections to all vendors."""

    def __init__(self, pool: Pool, lookup: Lookup, tls: ssl.SSLContext) -> None:
        self._pool = pool
        self._lookup = lookup
        self._tls = tls

    async def send(
        self,
        url: str,
        *,
        method: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterable[bytes] | None,
        connect_s: float,
        repeatable: bool,
        request_id: str = "",
    ) -> Response:
        """The answer, its head read; it is the caller's to leave.

        A connection that was kept may end just as it is used: a `repeatable` request without a byte of an answer
        is then sent once more at once, over a new connection. One that must not be sent twice has a new one to
        begin with.

        `BadAddress`, `BadHeader`; `OSError`: no connection; `TimeoutError`: none in `connect_s`; `BrokenResponse`.
        What `body` raises is raised here or by the answer's `read`.
        """
        origin = address_of(url).origin
        whole = b"" if body is None else body if isinstance(body, bytes) else None
        body_bytes = None if whole is None else len(whole)
        head = head_of(method, url, headers, body_bytes=body_bytes, request_id=request_id)
        if whole is not None and repeatable and (kept := self._pool.take(origin)) is not None:
            answer = kept.begin(head, whole)
            try:
                await answer.head()
            except BaseException as error:
                answer.close()
                if answer.begun or not isinstance(error, OSError):
                    raise
            else:
                return answer
        connection = await self._connect(origin, connect_s)
        answer = connection.begin(head, whole)
        try:
            if body is not None and not isinstance(body, bytes):
                answer.sent_by(background(connection.send_chunks(answer, body)))
            await answer.head()
        except BaseException:
            await answer.leave()
            raise
        return answer

    async def _connect(self, origin: Origin, connect_s: float) -> Connection:
        loop = asyncio.get_running_loop()
        missing = "no address of its host name"
        try:
            async with asyncio.timeout(connect_s):
                addresses = await self._lookup.addresses(origin.host, origin.port)
                missing = "no connection"
                sock = await start_connection(addresses, happy_eyeballs_delay=_SECOND_ADDRESS_S, interleave=1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                missing = "no TLS handshake"
                _, connection = await loop.create_connection(
                    lambda: Connection(origin, self._pool),
                    sock=sock,
                    ssl=self._tls if origin.tls else None,
                    server_hostname=origin.host if origin.tls else None,
                )
        except TimeoutError as error:
            if error.errno:  # the system's own
                raise
            raise ConnectTimeout(missing) from None
        self._pool.add(connection)
        return connection


@asynccontextmanager
async def open_http1(
    resolver: AbstractResolver, *, idle_s: float, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Http1Client]:
    """A client whose connections are closed with the block. `tls`: in place of what the system trusts."""
    pool = Pool(idle_s=idle_s)
    try:
        yield Http1Client(pool, Lookup(resolver), tls or _system_tls())
    finally:
        await pool.close()


@cache
def _system_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
