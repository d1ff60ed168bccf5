"""HAProxy with the shipped configuration passes streams on immediately, and the doctor names what harms."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from storage.operators.doctor_reports import Finding
from tests.app.doctor.doctor import BROKEN, Doctor, bad_points, point
from tests.deploy.proxies.haproxy import HAPROXY, running_haproxy
from tests.running.servers import Databases, Server, listening_socket, new_server

pytestmark = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    data = tmp_path_factory.mktemp("data")
    async with new_server(databases, data, trusted_proxies=("127.0.0.1/32",)) as running:
        yield running


async def examine(server: Server, folder: Path, edits: Mapping[str, str]) -> list[Finding]:
    with running_haproxy(folder, urlsplit(server.url).netloc, edits) as haproxy:
        return await Doctor(server).examine("proxy", public_url=haproxy.url)


async def test_the_shipped_configuration_is_good(module_server: Server, tmp_path: Path) -> None:
    findings = await examine(module_server, tmp_path, {})
    assert bad_points(findings) == set()
    assert point(findings, "client addresses").seen == "the server sees 127.0.0.1"


async def test_a_proxy_that_waits_for_requests_is_named(module_server: Server, tmp_path: Path) -> None:
    findings = await examine(
        module_server, tmp_path, {"no option http-buffer-request": "option http-buffer-request"}
    )
    found = point(findings, "uploads")
    assert found.state is BROKEN
    assert "no option http-buffer-request" in found.fix


async def test_callers_get_an_envelope_while_no_server_is_available(server: Server, tmp_path: Path) -> None:
    with listening_socket() as nobody:
        parley = "{}:{}".format(*nobody.getsockname())
    with running_haproxy(tmp_path, parley) as haproxy:
        async with server.http.post(f"{haproxy.url}/bp/ai/conversation", data=b"{}") as answer:
            assert answer.status in {502, 503}
            assert answer.headers["Retry-After"] == "1"
            assert (await answer.json())["error"]["error_type"] == "gateway"
