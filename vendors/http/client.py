"""Opens the HTTP client of the process, with its connections, sessions and name resolution."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

from vendors.http.dns import DnsResolver
from vendors.http.http1.client import open_http1
from vendors.http.sockets import socket_or_error
from vendors.http.transport import VendorHttp


@asynccontextmanager
async def open_vendor_http(
    *,
    idle_s: float = 60,
    dns_servers: Sequence[tuple[str, int]] = (),
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[VendorHttp]:
    """Open the HTTP client of the process. It ignores proxies of the environment and cookies.

    Requests use the client of `vendors/http/http1`, and WebSockets that of aiohttp. Idle connections are kept for
    `idle_s`. Host names are resolved by `dns_servers` if given, else by the system. `tls` replaces the system's
    default TLS context.
    """
    resolver = DnsResolver(dns_servers) if dns_servers else aiohttp.ThreadedResolver()
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=idle_s, ttl_dns_cache=60, resolver=resolver, ssl=tls or True
    )
    async with (
        open_http1(resolver, idle_s=idle_s, tls=tls) as http1,
        aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            middlewares=(socket_or_error,),
        ) as socket_session,
    ):
        yield VendorHttp(http1, socket_session)
