"""Checks the connection to each server in configs: its name, its port and its certificate."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from ipaddress import ip_address

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from app.doctor.findings import Area, error_text
from app.doctor.secrets import is_local
from app.doctor.surroundings import Surroundings
from app.doctor.targets import KINDS, Target, targets_of, unchecked
from storage.operators.doctor_reports import Finding
from vendors.http.dns import DnsResolver

AREA = Area("vendors")
_WITHIN_S = 5
_SLOW_DNS_S = 1.0
_AT_ONCE = 16
EXPIRES_DAYS = 14
"""A certificate that expires within this time is reported."""


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    for finding in unchecked(AREA, here, KINDS):
        yield finding
    if here.configs is None:
        return
    dns = here.settings.dns_servers
    resolver: AbstractResolver = DnsResolver(dns) if dns else ThreadedResolver()
    free = asyncio.Semaphore(_AT_ONCE)

    async def checked(target: Target) -> Finding:
        async with free:
            return await check_target(AREA, target, resolver, here)

    try:
        for finding in await asyncio.gather(*map(checked, targets_of(here.configs, here.settings))):
            yield finding
    finally:
        await resolver.close()


async def check_target(area: Area, target: Target, resolver: AbstractResolver, here: Surroundings) -> Finding:
    """Resolve and connect to a server, with a TLS handshake if its scheme is https."""
    users = f"used by {', '.join(target.configs[:3])}{' …' if len(target.configs) > 3 else ''}"
    try:
        began = time.perf_counter()
        addresses = await _resolve(resolver, target)
        dns_s = time.perf_counter() - began
    except (OSError, TimeoutError) as error:
        return area.broken(
            target.address,
            f"the name cannot be resolved: {error_text(error)} ({users})",
            why="all calls to it fail",
            fix="correct the address in the config, the name servers of this machine, or PARLEY_DNS",
        )
    try:
        began = time.perf_counter()
        expires = await _connect(target, addresses, here.tls)
        connect_s = time.perf_counter() - began
    except ssl.SSLCertVerificationError as error:
        return area.broken(
            target.address,
            f"its certificate is refused: {error.verify_message} ({users})",
            why="all calls to it fail",
            fix="correct the address, renew the certificate, or add its authority to this machine "
            "(update-ca-certificates, or SSL_CERT_FILE)",
        )
    except (OSError, TimeoutError) as error:
        return area.broken(
            target.address,
            f"no connection: {error_text(error)} ({users})",
            why="all calls to it fail",
            fix="allow connections to it in the firewall, or correct the address in the config",
        )
    seen = f"connected in {connect_s * 1000:.0f} ms ({users})"
    days = None if expires is None else (expires - here.now).days
    return _judge(area, target, seen, days=days, dns_s=dns_s)


def _judge(area: Area, target: Target, seen: str, *, days: int | None, dns_s: float) -> Finding:
    if target.scheme == "http" and not is_local(target.host):
        return area.doubtful(
            target.address,
            f"{seen}, without TLS",
            why="keys and conversations can be read on the way",
            fix="use an https:// address in the config",
        )
    if days is not None and days < EXPIRES_DAYS:
        return area.doubtful(
            target.address,
            f"{seen}; its certificate expires in {days} days",
            why="calls fail from then on",
            fix="have it renewed",
        )
    if dns_s > _SLOW_DNS_S:
        return area.doubtful(
            target.address,
            f"{seen}; its name was resolved in {dns_s:.1f} s",
            why="the first call of each minute waits for it",
            fix="name fast and close DNS servers in PARLEY_DNS",
        )
    return area.good(target.address, seen)


async def _resolve(resolver: AbstractResolver, target: Target) -> list[ResolveResult]:
    try:
        ip_address(target.host)
    except ValueError:
        async with asyncio.timeout(_WITHIN_S):
            return await resolver.resolve(target.host, target.port)
    literal = ResolveResult(hostname=target.host, host=target.host, port=target.port, family=0, proto=0, flags=0)
    return [literal]


async def _connect(target: Target, addresses: list[ResolveResult], tls: ssl.SSLContext) -> datetime | None:
    """Connect to the first address that answers. Return the end of its certificate, if it has one."""
    failure: Exception = OSError("the name has no address")
    for address in addresses:
        try:
            async with asyncio.timeout(_WITHIN_S):
                return await _connect_to(target, address["host"], tls)
        except ssl.SSLCertVerificationError:
            raise
        except (OSError, TimeoutError) as error:
            failure = error
    raise failure


async def _connect_to(target: Target, address: str, tls: ssl.SSLContext) -> datetime | None:
    secure = target.scheme == "https"
    _, writer = await asyncio.open_connection(
        address,
        target.port,
        ssl=tls if secure else None,
        server_hostname=target.host if secure else None,
    )
    try:
        certificate = writer.get_extra_info("peercert") or {}
        ends = certificate.get("notAfter")
        return None if ends is None else datetime.fromtimestamp(ssl.cert_time_to_seconds(ends), UTC)
    finally:
        writer.transport.abort()
