"""Finds the IP address to locate in `X-Forwarded-For` (§4.21)."""

import re
from collections.abc import Iterator, Sequence

from aiohttp import web

from app.http.callers.addresses import networks_of, parse_address
from streams.wire.errors import InvalidParameter
from vendors.geo.database import Address

HEADER = "X-Forwarded-For"
_MAX_CHARACTERS = 45
"""The length of the longest form of an IPv6 address."""
_WITH_PORT = re.compile(r"\[(?P<ipv6>[^\]]*)\](?::\d+)?|(?P<ipv4>[\d.]+):\d+")


def address_of(request: web.Request, trusted_proxies: Sequence[str]) -> Address:
    """Return the address to locate. Raises `InvalidParameter` if the header contains none.

    Without trusted proxies, this is the first valid address of the header. With them, it is the last address before
    the trusted proxies, the first of which is the peer of the connection. Without the header, it is the peer.
    """
    peer = parse_forwarded(request.remote or "")
    hops = list(_hops(request))
    if not hops and any(request.headers.getall(HEADER, [])):
        raise InvalidParameter(f"{HEADER} has no valid IP address")
    if not trusted_proxies and hops:
        return hops[0]
    found = _before(tuple(trusted_proxies), [*hops, *([peer] if peer else [])])
    if found is None:
        raise InvalidParameter(f"{HEADER} is missing")
    return found


def _hops(request: web.Request) -> Iterator[Address]:
    for text in ",".join(request.headers.getall(HEADER, [])).split(","):
        if (address := parse_forwarded(text.strip())) is not None:
            yield address


def _before(trusted_proxies: tuple[str, ...], hops: list[Address]) -> Address | None:
    """Return the last of `hops` that is not trusted, or the first one if all are."""
    trusted = networks_of(trusted_proxies)
    for hop in reversed(hops):
        if not any(hop in network for network in trusted):
            return hop
    return hops[0] if hops else None


def parse_forwarded(text: str) -> Address | None:
    """Parse an address with or without a port, brackets and a zone. A mapped address is returned as IPv4."""
    if (match := _WITH_PORT.fullmatch(text)) is not None:
        text = match["ipv6"] or match["ipv4"] or ""
    text = text.partition("%")[0]
    # Clients can send longer texts, which must not fill the cache of parsed addresses.
    return parse_address(text) if len(text) <= _MAX_CHARACTERS else None
