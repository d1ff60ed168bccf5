"""An HTTP/1.1 client for responses that arrive in many small parts.

It has no redirects, cookies or proxies, asks for uncompressed bodies and does not support `HEAD`.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from ipaddress import ip_address

from aiohappyeyeballs import AddrInfoType, start_connection
from aiohttp.abc import AbstractResolver

from streams.tasks import background
from vendors.geo.ranges import has_place, plain
from vendors.http.http1.connection import Connection
from vendors.http.http1.dns_cache import DnsCache
from vendors.http.http1.errors import ConnectTimeout, NotPublic
from vendors.http.http1.pool import Pool
from vendors.http.http1.request import Origin, encode_head, parse_url
from vendors.http.http1.response import Response

_SECOND_ADDRESS_S = 0.25
"""Delay before a connection to the next address is tried in parallel (Happy Eyeballs)."""


class Http1Client:
    """Sends requests to all vendors over pooled connections."""

    def __init__(self, pool: Pool, lookup: DnsCache, tls: ssl.SSLContext) -> None:
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
        public_only: bool = False,
        request_id: str = "",
    ) -> Response:
        """Send a request and return its response once the head has arrived. The caller closes the response.

        An idle connection may be closed by the server just as it is used. A `repeatable` request that gets no byte
        of a response over it is sent once more over a new connection. Other requests always use a new connection,
        also those that are `public_only`: they connect to public addresses only.

        Raise `BadAddress` or `BadHeader` for an invalid request, `OSError` if no connection is made, `TimeoutError`
        if that takes longer than `connect_s`, and `BrokenResponse` for an invalid response. Exceptions of `body`
        are raised here or by `Response.read`.
        """
        origin = parse_url(url).origin
        fixed_body = b"" if body is None else body if isinstance(body, bytes) else None
        body_bytes = None if fixed_body is None else len(fixed_body)
        head = encode_head(method, url, headers, body_bytes=body_bytes, request_id=request_id)
        reuses = fixed_body is not None and repeatable and not public_only
        if fixed_body is not None and reuses and (idle := self._pool.take(origin)) is not None:
            response = idle.begin(head, fixed_body)
            try:
                await response.head()
            except BaseException as error:
                response.close()
                if response.started or not isinstance(error, OSError):
                    raise
            else:
                return response
        connection = await self._connect(origin, connect_s, public_only=public_only)
        response = connection.begin(head, fixed_body)
        try:
            if body is not None and not isinstance(body, bytes):
                response.send_body_in(background(connection.send_chunks(response, body)))
            await response.head()
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _connect(self, origin: Origin, connect_s: float, *, public_only: bool) -> Connection:
        loop = asyncio.get_running_loop()
        missing = "no address of its host name"
        connection = Connection(origin, self._pool)
        try:
            async with asyncio.timeout(connect_s):
                addresses = await self._addresses(origin, public_only=public_only)
                missing = "no connection"
                sock = await start_connection(addresses, happy_eyeballs_delay=_SECOND_ADDRESS_S, interleave=1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                missing = "no TLS handshake"
                await loop.create_connection(
                    lambda: connection,
                    sock=sock,
                    ssl=self._tls if origin.tls else None,
                    server_hostname=origin.host if origin.tls else None,
                )
        except BaseException as error:
            # A loop whose attempt is cancelled may leave the connection neither made nor lost.
            connection.connection_lost(None)
            if isinstance(error, TimeoutError) and not error.errno:  # Raised by `asyncio.timeout`.
                raise ConnectTimeout(missing) from None
            raise
        self._pool.add(connection)
        return connection

    async def _addresses(self, origin: Origin, *, public_only: bool) -> list[AddrInfoType]:
        addresses = await self._lookup.addresses(origin.host, origin.port)
        if not public_only:
            return addresses
        if public := [address for address in addresses if _is_public(address)]:
            return public
        raise NotPublic


@asynccontextmanager
async def open_http1(
    resolver: AbstractResolver, *, idle_s: float, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Http1Client]:
    """Open a client.

    Its connections are closed at the end of the block. `tls` replaces the system's default context.
    """
    pool = Pool(idle_s=idle_s)
    try:
        yield Http1Client(pool, DnsCache(resolver), tls or _system_tls())
    finally:
        await pool.close()


def _is_public(address: AddrInfoType) -> bool:
    return has_place(plain(ip_address(address[4][0])))


@cache
def _system_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
