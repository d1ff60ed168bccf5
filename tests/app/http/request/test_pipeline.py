"""Behaviour of all endpoints: request ids, versions, slashes, CORS, health and metrics."""

import tomllib

import pytest

from storage.operators.audit import COMMAND
from tests.code.source_files import ROOT
from tests.running.servers import ADMIN_TOKEN, Server


async def test_invalid_request_ids_are_replaced(server: Server) -> None:
    for given, taken in (("abc-1.2_3", True), ("x" * 64, True), ("x" * 65, False), ("no spaces", False)):
        async with server.http.get(f"{server.url}/healthz", headers={"X-Request-Id": given}) as response:
            assert (response.headers["X-Request-Id"] == given) is taken
            assert response.headers["X-Request-Id"]


async def test_errors_carry_the_request_id_too(server: Server) -> None:
    async with server.http.get(f"{server.url}/nothing", headers={"X-Request-Id": "mine"}) as response:
        assert response.status == 404
        assert response.headers["X-Request-Id"] == "mine"


@pytest.mark.parametrize("path", ["/bp/user/login", "/bp/user/login/"])
async def test_a_path_answers_with_and_without_a_trailing_slash(server: Server, path: str) -> None:
    async with server.http.post(server.url + path, json={"device": {"id": "d1"}}) as response:
        assert response.status == 200


async def test_a_body_over_its_limit_is_refused(server: Server) -> None:
    body = b'{"device":{"id":"' + b"x" * 140_000 + b'"}}'
    async with server.http.post(f"{server.url}/bp/user/login", data=body) as response:
        assert response.status == 413
        assert (await response.json())["error"]["message"] == "invalid_parameter: body exceeds 131072 bytes"


async def test_pages_of_allowed_origins_may_call(server: Server) -> None:
    value = {"cors": {"origins": ["https://app.example"]}}
    await server.services.configs.put("default", "apps", "default", value, author="test", origin=COMMAND)
    url, origin = f"{server.url}/bp/ai/conversation", {"Origin": "https://app.example"}
    preflight = {
        **origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-service-sign",
    }
    async with server.http.options(url, headers=preflight) as response:
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert "POST" in response.headers["Access-Control-Allow-Methods"]
        assert response.headers["Access-Control-Allow-Headers"] == "x-service-sign"
    async with server.http.post(url, headers=origin) as response:
        assert response.status == 400
        assert response.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert "X-Service-Stream-Id" in response.headers["Access-Control-Expose-Headers"]
    async with server.http.options(url, headers={**preflight, "Origin": "https://evil.example"}) as response:
        assert response.status == 204
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_health_readiness_and_metrics_are_answered(server: Server) -> None:
    async with server.http.get(f"{server.url}/healthz") as response:
        assert response.status == 200
    async with server.http.get(f"{server.url}/readyz") as response:
        assert response.status == 200
        answer = await response.json()
    assert answer["status"] == "ok"
    assert answer["parts"]["postgres"] == answer["parts"]["valkey"] == "ok"
    async with server.http.get(f"{server.url}/metrics") as response:
        text = await response.text()
    assert 'parley_requests_total{endpoint="/readyz",method="GET",status="200"}' in text
    for store in ("postgres", "valkey"):
        assert f'parley_store_available{{store="{store}"}} ' in text  # Earlier tests may have lost other stores.
        assert f'parley_store_seconds_count{{store="{store}"}}' in text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/readyz/"])
async def test_head_of_the_health_paths_has_the_status_and_headers_of_get(server: Server, path: str) -> None:
    async def answer(method: str) -> tuple[int, dict[str, str], bytes]:
        headers = {"X-Request-Id": "mine"}
        async with server.http.request(method, server.url + path, headers=headers) as response:
            return response.status, {**response.headers, "Date": ""}, await response.read()

    for draining in (False, True):
        server.services.supervisor.draining = draining
        status, headers, body = await answer("GET")
        assert status == (503 if draining and path != "/healthz" else 200)
        assert int(headers["Content-Length"]) == len(body) > 0
        assert await answer("HEAD") == (status, headers, b"")


async def test_the_version_of_the_project_is_in_health_metrics_and_the_admin_api(server: Server) -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for path in ("/healthz", "/readyz"):
        async with server.http.get(server.url + path) as response:
            assert (await response.json())["version"] == stated
    async with server.http.get(f"{server.url}/metrics") as response:
        assert f'parley_build_info{{version="{stated}"}} 1.0' in await response.text()
    admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    for path, status in (("/admin/api/kinds", 200), ("/admin/api/configs/none/apps/none", 404)):
        async with server.http.get(server.url + path, headers=admin) as response:
            assert (response.status, response.headers["X-Parley-Version"]) == (status, stated)
    async with server.http.get(f"{server.url}/healthz") as response:
        assert "X-Parley-Version" not in response.headers


@pytest.mark.usefixtures("local_vendors")
async def test_a_draining_server_is_not_ready_and_refuses_streams(server: Server) -> None:
    _, token = await server.login()
    server.services.supervisor.draining = True
    async with server.http.get(f"{server.url}/readyz") as response:
        assert response.status == 503
        assert (await response.json())["status"] == "draining"
    body = {"text": "Hello", "strategies": ["local"]}
    headers = {"X-Service-Session-Token": token}
    async with server.http.post(f"{server.url}/bp/ai/audio/tts", json=body, headers=headers) as response:
        assert response.status == 503
        assert int(response.headers["Retry-After"]) >= 1
        error = (await response.json())["error"]
        assert error["error_type"] == "backend unavailable"
        assert error["extra"]["retryable"] is True
