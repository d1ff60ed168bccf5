"""Checks the deployment as clients and monitoring see it: the public URL, and the ports of the processes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import ClientSession, ThreadedResolver
from prometheus_client.parser import text_string_to_metric_families

from app.doctor.findings import Area, error_text
from app.doctor.surroundings import Surroundings
from app.doctor.targets import Target
from app.doctor.vendors import check_target
from app.environment import own_url
from app.version import version
from storage.operators.doctor_reports import Finding
from streams.wire.codec import loads

AREA = Area("outside")
PROCESSES = Area("processes")
WITHIN_S = 5
_RECEIVE_BYTES = 64 * 1024
_PORTS = {"https": 443, "http": 80}
_FEW_FILES = 4_096
FAILURES = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
"""The errors of a request that gets no proper response."""


def open_http(here: Surroundings) -> ClientSession:
    """Open a client that calls the deployment as other clients do, without proxies from the environment."""
    connector = aiohttp.TCPConnector(
        ssl=here.tls, resolver=ThreadedResolver(), force_close=True, socket_factory=_small_socket
    )
    return ClientSession(
        connector=connector, trust_env=False, timeout=aiohttp.ClientTimeout(total=WITHIN_S), auto_decompress=True
    )


def _small_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket with a small kernel buffer, so that a server notices when the client does not read."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)  # noqa: FBT003 - a positional-only parameter
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
    return made


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    settings, parts = here.settings, urlsplit(here.settings.public_url)
    if not settings.has_public_url:
        yield AREA.doubtful(
            "PARLEY_PUBLIC_URL",
            "not set",
            why="links in responses lead to this machine only, and no email with a link is sent",
            fix="set it to the URL at which clients reach the server",
        )
    target = Target(parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme], ["PARLEY_PUBLIC_URL"])
    way = await check_target(AREA, target, ThreadedResolver(), here)
    yield way
    async with open_http(here) as http:
        yield await _answers(http, settings.public_url)
        async for finding in _exposed(http, here):
            yield finding
        async for finding in _processes(http, here):
            yield finding


async def _answers(http: ClientSession, public_url: str) -> Finding:
    try:
        async with http.get(f"{public_url}/healthz", allow_redirects=False) as response:
            body, status = await response.read(), response.status
        healthy = status == 200 and _status_of(body) == "ok"
        seen = f"/healthz answers {status}"
    except FAILURES as error:
        healthy, seen = False, f"/healthz: {error_text(error)}"
    if healthy:
        return AREA.good("answer", seen)
    return AREA.broken(
        "answer",
        seen,
        why="clients do not reach Parley",
        fix="start the server, or correct PARLEY_PUBLIC_URL, the proxy's address of Parley, or its server_name",
    )


def _status_of(body: bytes) -> object:
    """Return the field `status` of a response, which may be that of another server."""
    found = loads(body)
    return found.get("status") if isinstance(found, dict) else None


async def _exposed(http: ClientSession, here: Surroundings) -> AsyncIterator[Finding]:
    """Report pages that anybody with access to the public URL can read."""
    if here.settings.development:
        return
    for path in ("/metrics", "/docs"):
        try:
            async with http.get(here.settings.public_url + path, allow_redirects=False) as response:
                status = response.status
        except FAILURES:
            continue
        if status == 200:
            yield AREA.doubtful(
                path,
                "anybody can read it",
                why="it shows which vendors and which versions you use",
                fix="set PARLEY_METRICS or PARLEY_DOCS to private, or deny the path in the proxy",
            )


async def _processes(http: ClientSession, here: Surroundings) -> AsyncIterator[Finding]:
    settings = here.settings
    if settings.metrics_port is None:
        yield PROCESSES.doubtful(
            "PARLEY_METRICS_PORT",
            "not set",
            why="Prometheus and this command cannot see single processes",
            fix="set it to the first of PARLEY_PROCESSES free ports",
        )
        return
    ports = {f"server {number}": settings.metrics_port + number for number in range(settings.processes)}
    if settings.worker_port is not None:
        ports["worker"] = settings.worker_port
    urls = {name: own_url(settings.metrics_host, port) for name, port in ports.items()}
    versions: dict[str, str] = {}
    for finding in await asyncio.gather(*(_process(http, name, url, versions) for name, url in urls.items())):
        yield finding
    if {*versions.values()} - {version()}:
        shown = ", ".join(f"{name}: {its}" for name, its in versions.items())
        yield PROCESSES.doubtful(
            "versions",
            f"{shown}; this command: {version()}",
            why="they answer differently; that is meant to last only as long as an upgrade",
            fix="restart the processes of the old version, or run this command with the version that serves",
        )


async def _process(http: ClientSession, name: str, url: str, versions: dict[str, str]) -> Finding:
    """Examine one process, and add its version to `versions`."""
    try:
        async with http.get(f"{url}/readyz") as response:
            ready: dict[str, Any] = loads(await response.read())
        async with http.get(f"{url}/metrics") as response:
            files = _files(await response.text())
    except FAILURES as error:
        return PROCESSES.broken(
            name,
            f"{url}: {error_text(error)}",
            why="it does not run, so its share of requests, or all jobs, wait",
            fix="start it, or correct PARLEY_PROCESSES, PARLEY_METRICS_PORT and PARLEY_WORKER_PORT",
        )
    versions[name] = str(ready.get("version"))
    causes = ", ".join(f"{part}: {cause}" for part, cause in ready.get("causes", {}).items())
    if ready.get("status") != "ok":
        return PROCESSES.broken(
            name,
            f"{url}/readyz: {ready.get('status')}{causes and f' ({causes})'}",
            why="it serves nothing that needs the part",
            fix="repair the part",
        )
    if causes:
        return PROCESSES.doubtful(name, f"{url}/readyz: {causes}", why="some requests fail", fix="repair the part")
    if files is not None and files < _FEW_FILES:
        return PROCESSES.broken(
            name,
            f"{url}: {files:.0f} open files are allowed",
            why="a stream uses two, and 1,000 are kept free for stores and files: further clients get 503",
            fix="set LimitNOFILE=65536 in its unit, or ulimits in its container",
        )
    return PROCESSES.good(name, f"ready{'' if files is None else f', {files:.0f} open files are allowed'}")


def _files(text: str) -> float | None:
    for family in text_string_to_metric_families(text):
        if family.name == "process_max_fds":
            return float(family.samples[0].value)
    return None
