"""The IP address that a request asks about: §4.21, read from `X-Forwarded-For`."""

import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import web

from streams.wire.errors import InvalidParameter
from vendors.geo.database import Address

HEADER = "X-Forwarded-For"
_WITH_PORT = re.compile(r"\[(?P<ipv6>[^\]]*)\](?::\d+)?|(?P<ipv4>[\d.]+):\d+")


def address_of(request: web.Request, trusted_proxies: Sequence[str]) -> Address:
    """Return the address that a request asks about. Raises `InvalidParameter` if its header has none.

    Without trusted proxies, that is the first valid address of the header. With them, it is the last one before the
    trusted proxies, the first of which is the peer of the connection. Without the header, it is the peer.
    """
    peer = parsed(request.remote or "")
    hops = list(_hops(request))
    if not hops and any(request.headers.getall(HEADER, [])):
        raise InvalidParameter(f"{HEADER} has no valid IP address")
    if not trusted_proxies and hops:
        return hops[0]
    found = _before([ip_network(each) for each in trusted_proxies], [*hops, *([peer] if peer else [])])
    if found is None:
        raise InvalidParameter(f"{HEADER} is missing")
    return found


def _hops(request: web.Request) -> Iterator[Address]:
    for text in ",".join(request.headers.getall(HEADER, [])).split(","):
        if (address := parsed(text.strip())) is not None:
            yield address


def _before(trusted: list[IPv4Network | IPv6Network], hops: list[Address]) -> Address | None:
    """Return the last of `hops` that is not trusted, or the first one if all are."""
    for hop in reversed(hops):
        if not any(hop in network for network in trusted):
            return hop
    return hops[0] if hops else None


def parsed(text: str) -> Address | None:
    """Parse an address with or without a port, brackets and a zone. A mapped one is returned as IPv4."""
    if (match := _WITH_PORT.fullmatch(text)) is not None:
        text = match["ipv6"] or match["ipv4"] or ""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
