"""IP addresses of clients, behind trusted proxies too, and the networks that count as one client."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import web

_Address = IPv4Address | IPv6Address
_Networks = tuple[IPv4Network | IPv6Network, ...]
_IPV6_SITE_BITS = 64


def peer_ip(request: web.Request, trusted_proxies: tuple[str, ...]) -> str:
    """Return the client address, in a way that the client cannot forge.

    It is the address of the socket. If that is a trusted proxy, `X-Forwarded-For` is read from its end, up to the
    first address that is not a trusted proxy. Empty for a socket without addresses.
    """
    return client_ip(request.remote or "", request.headers.getall("X-Forwarded-For", []), trusted_proxies)


def client_ip(remote: str, forwarded_for: Iterable[str], trusted_proxies: tuple[str, ...]) -> str:
    """Return the same for the address of a socket and the values of `X-Forwarded-For`."""
    peer = parse_address(remote)
    trusted = networks_of(trusted_proxies)
    hops = ",".join(forwarded_for).split(",") if trusted else []
    while peer is not None and hops and any(peer in network for network in trusted):
        hop = parse_address(hops.pop().strip())
        if hop is None:
            break
        peer = hop
    return "" if peer is None else str(peer)


def client_network(request: web.Request, trusted_proxies: tuple[str, ...], *, ipv4_bits: int | None = None) -> str:
    """Return the network of the client address, which counts as one client: see `peer_ip` and `network_of`."""
    return network_of(peer_ip(request, trusted_proxies), ipv4_bits=ipv4_bits)


def is_trusted(address: str, trusted_proxies: tuple[str, ...]) -> bool:
    """Return whether `address` is that of a trusted proxy."""
    peer = parse_address(address)
    return peer is not None and any(peer in network for network in networks_of(trusted_proxies))


def network_of(address: str, *, ipv4_bits: int | None = None) -> str:
    """Return the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address.

    With `ipv4_bits`, it is the network of that size for an IPv4 address too.
    """
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, _IPV6_SITE_BITS), strict=False))
    if parsed is not None and ipv4_bits is not None:
        return str(ip_network((parsed, ipv4_bits), strict=False))
    return address


@lru_cache(maxsize=4096)
def parse_address(text: str) -> _Address | None:
    """Parse an IP address with or without a zone. A mapped one is returned as IPv4."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


@lru_cache(maxsize=16)
def networks_of(cidrs: tuple[str, ...]) -> _Networks:
    """Parse networks, once."""
    return tuple(ip_network(cidr) for cidr in cidrs)
