"""Whom a call is counted for, and from where it comes."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import web

from app.http.caller import Caller
from app.services import Services
from storage.kinds.limits import Limits

_Address = IPv4Address | IPv6Address
_Networks = tuple[IPv4Network | IPv6Network, ...]
_IPV6_SITE_BITS = 64


async def check(
    services: Services, app_limits: Limits, request: web.Request, caller: Caller, *, name: str | None = None
) -> None:
    """Count the call, or raise `api_rate_limit`.

    An app's server is counted by its key. The rate `name` is counted by user, else by the address of the
    caller; the address of an app's server is nobody's in particular and is not.
    """
    if caller.server_key is not None:
        await _count(services, app_limits, caller, name="server", who=f"key:{caller.server_key}")
    if name is not None and caller.user_id is not None:
        await _count(services, app_limits, caller, name=name, who=f"user:{caller.user_id}")
    elif name is not None:
        await check_address(services, app_limits, request, caller, name=name)


async def check_address(
    services: Services, app_limits: Limits, request: web.Request, caller: Caller, *, name: str
) -> None:
    """Count something under `name` for the caller's address alone."""
    if caller.server_key is None:
        who = f"address:{network_of(peer_ip(request, services.settings.trusted_proxies))}"
        await _count(services, app_limits, caller, name=name, who=who)


async def _count(services: Services, app_limits: Limits, caller: Caller, *, name: str, who: str) -> None:
    rate = app_limits.rate(name)
    if rate is not None:
        await services.limiter.check(rate, app_id=caller.app_id, name=name, who=who)


def peer_ip(request: web.Request, trusted_proxies: tuple[str, ...]) -> str:
    """The address that the caller cannot choose.

    It is the socket's; where that is a trusted proxy, the one that the proxy added to `X-Forwarded-For`,
    and so on to the left as long as a trusted one speaks. Empty on a socket without addresses.
    """
    peer = _address(request.remote or "")
    trusted = _networks(trusted_proxies)
    hops = ",".join(request.headers.getall("X-Forwarded-For", [])).split(",") if trusted else []
    while peer is not None and hops and any(peer in network for network in trusted):
        hop = _address(hops.pop().strip())
        if hop is None:
            break
        peer = hop
    return "" if peer is None else str(peer)


def is_trusted(address: str, trusted_proxies: tuple[str, ...]) -> bool:
    """Whether the address of a socket is that of a trusted proxy."""
    peer = _address(address)
    return peer is not None and any(peer in network for network in _networks(trusted_proxies))


def network_of(address: str) -> str:
    """What one caller may be taken to hold: an IPv4 address, or the /64 of an IPv6 address."""
    parsed = _address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, _IPV6_SITE_BITS), strict=False))
    return address


def _address(text: str) -> _Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


@lru_cache(maxsize=16)
def _networks(cidrs: tuple[str, ...]) -> _Networks:
    return tuple(ip_network(cidr) for cidr in cidrs)
