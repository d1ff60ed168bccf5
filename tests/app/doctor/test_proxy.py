"""`python -m app doctor` finds out what a real nginx does to streams, and names the setting that helps."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from storage.operators.doctor_reports import Finding, State
from tests.app.doctor.doctor import BROKEN, DOUBTFUL, GOOD, Doctor, bad_points, point
from tests.deploy.proxies.nginx import NGINX, running_nginx
from tests.running.servers import Databases, Server, new_server

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

BUFFERS = {"proxy_buffering off;": "proxy_buffering on;"}
IGNORES = {**BUFFERS, "gzip off;": "gzip off; proxy_ignore_headers X-Accel-Buffering;"}
OLD = {"proxy_http_version 1.1;": "proxy_http_version 1.0;"}
"""With HTTP/1.0, nginx collects events until a buffer is full."""
HELD = {"proxy_request_buffering off;": "proxy_request_buffering on;"}
GZIP = {"gzip off;": "gzip on;"}
SMALL = {"client_max_body_size 32m;": ""}
HIDDEN = {"proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;": ""}


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    data = tmp_path_factory.mktemp("data")
    async with new_server(
        databases, data, trusted_proxies=("127.0.0.1/32",), sandbox_url="http://127.0.0.1:1"
    ) as running:
        yield running


async def findings_behind(server: Server, folder: Path, edits: Mapping[str, str], *only: str) -> list[Finding]:
    with running_nginx(folder, urlsplit(server.url).netloc, edits=edits) as nginx:
        return await Doctor(server).examine(*(only or ("proxy",)), public_url=nginx.url)


async def test_the_shipped_site_is_good(module_server: Server, tmp_path: Path) -> None:
    findings = await findings_behind(module_server, tmp_path, {}, "proxy", "outside", "webhooks")
    assert bad_points(findings) == {"PARLEY_METRICS_PORT"}
    assert point(findings, "stream").seen == "it passes, through nginx"
    assert point(findings, "client addresses").seen == "the server sees 127.0.0.1"
    assert {finding.point for finding in findings} >= {"uploads", "events", "size", "answer"}


async def test_a_server_without_a_proxy_is_good(module_server: Server) -> None:
    findings = await Doctor(module_server).examine("proxy")
    assert bad_points(findings) == set()
    assert point(findings, "stream").seen == "it passes; no proxy names itself"


@pytest.mark.soak
async def test_a_proxy_that_collects_events_is_named(module_server: Server, tmp_path: Path) -> None:
    findings = await findings_behind(module_server, tmp_path, {**OLD, **BUFFERS})
    assert bad_points(findings) == {"events", "uploads"}
    assert point(findings, "events").state is DOUBTFUL
    assert "without it, events written over 0.8" in point(findings, "events").seen


async def test_a_proxy_that_always_collects_events_is_broken(module_server: Server, tmp_path: Path) -> None:
    findings = await findings_behind(module_server, tmp_path, {**OLD, **IGNORES})
    assert bad_points(findings) == {"events", "uploads"}
    assert point(findings, "events").state is BROKEN
    assert "proxy_buffering off" in point(findings, "events").fix


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param((BUFFERS, "events", DOUBTFUL, "proxy_buffering off"), id="buffering"),
        pytest.param((IGNORES, "events", DOUBTFUL, "no proxy_ignore_headers"), id="ignored-header"),
        pytest.param((HELD, "uploads", BROKEN, "proxy_request_buffering off"), id="request-buffering"),
        pytest.param((GZIP, "compression", DOUBTFUL, "gzip off"), id="compression", marks=pytest.mark.soak),
        pytest.param((SMALL, "size", BROKEN, "client_max_body_size 32m"), id="small-requests"),
        pytest.param(
            (HIDDEN, "client addresses", DOUBTFUL, "proxy_set_header X-Forwarded-For"), id="hidden-clients"
        ),
    ],
)
async def test_a_setting_that_harms_is_named(
    fault: tuple[Mapping[str, str], str, State, str], module_server: Server, tmp_path: Path
) -> None:
    edits, name, state, setting = fault
    findings = await findings_behind(module_server, tmp_path, edits)
    found = point(findings, name)
    assert found.state is state
    assert setting in found.fix
    assert bad_points(findings) == {name}


async def test_a_proxy_that_is_not_trusted_is_named(databases: Databases, tmp_path: Path) -> None:
    async with new_server(databases, tmp_path / "data") as server:
        (folder := tmp_path / "nginx").mkdir()
        found = point(await findings_behind(server, folder, {}), "client addresses")
    assert found.state is DOUBTFUL
    assert found.fix == "set PARLEY_TRUSTED_PROXIES=127.0.0.1/32"


async def test_a_proxy_that_does_not_reach_the_server_is_broken(module_server: Server, tmp_path: Path) -> None:
    dead = {urlsplit(module_server.url).netloc: "127.0.0.1:1"}
    findings = await findings_behind(module_server, tmp_path, dead, "proxy", "outside")
    assert point(findings, "answer").state is BROKEN
    assert "502" in point(findings, "answer").seen
    assert point(findings, "stream").state is BROKEN


async def test_webhooks_that_the_proxy_keeps_away_are_broken(module_server: Server, tmp_path: Path) -> None:
    denied = {"location / {": "location /bp/webhook/ { return 404; }\n    location / {"}
    findings = await findings_behind(module_server, tmp_path, denied, "webhooks")
    assert findings
    assert {finding.state for finding in findings} == {BROKEN}
    assert all(finding.seen.startswith("404: not an answer of Parley") for finding in findings)
    assert GOOD not in {finding.state for finding in findings}
