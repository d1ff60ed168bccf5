"""No cache keeps what the server answers about users, errors included, unless a row says otherwise."""

import re
from collections.abc import Mapping

import pytest

from app.routes import public_routes
from storage.operators.audit import COMMAND
from tests.app.callers import token
from tests.running.servers import ADMIN_TOKEN, Server

PAGES = re.compile(r"/(talk|console|docs|openapi\.json|favicon\.ico|dev/[a-z]+|)(/|$)")
"""Paths of static pages and their parts, which browsers keep and revalidate by `ETag`."""
NO_STORE, REVALIDATED = "no-store", "no-cache"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def caching(server: Server, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Return the status and the `Cache-Control` of a response, whose body may be endless."""
    async with server.http.request(method, server.url + path, headers=headers, allow_redirects=False) as response:
        return response.status, response.headers.get("Cache-Control", "none")


async def test_every_endpoint_forbids_caches_in_successes_and_errors(server: Server) -> None:
    uid, session = await server.login()
    known = {"user_id": uid, "app": "default", "kind": "speech", "name": "local"}
    authenticated = {"X-Service-Session-Token": session, "Authorization": f"Bearer {ADMIN_TOKEN}", **token()}
    succeeded = set()
    for row in public_routes(server.services.settings):
        for template in row.paths:
            path = re.sub(r"\{(\w+)(:[^{}]*)?\}", lambda found: known.get(found[1], "none"), template)
            for headers in [{}, authenticated] if row.method == "GET" else [{}]:
                status, found = await caching(server, row.method, path, headers)
                if status == 200:
                    succeeded.add(template)
                is_static = PAGES.match(path) and found == REVALIDATED
                assert is_static or found.startswith(NO_STORE), (row.method, path, status, found)
    assert {
        "/bp/user/me", "/bp/server/user/{user_id}", "/bp/asset", "/bp/ai/conversations", "/healthz", "/metrics",
        "/.well-known/jwks.json", "/admin/api/users/{app}/{user_id}", "/admin/api/configs/{app}/{kind}/{name}",
    } <= succeeded  # fmt: skip


async def test_refusals_of_the_layers_below_the_endpoints_forbid_caches(server: Server) -> None:
    configs = server.services.configs
    once = {"rates": {"detect": {"count": 1, "per_s": 600}}}
    await configs.put("default", "limits", "default", once, author="test", origin=COMMAND)
    for method, path, options, refused in [
        ("POST", "/bp/user/login", {"data": b" " * 200_000}, 413),
        ("POST", "/bp/user/detect", {"json": {"email": "a@example.com"}}, None),
        ("POST", "/bp/user/detect", {"json": {"email": "a@example.com"}}, 429),
        ("PATCH", "/bp/user/me", {}, 405),
        ("GET", "/nothing", {}, 404),
        ("OPTIONS", "/bp/user/me", {}, 204),
    ]:
        async with server.http.request(method, server.url + path, **options) as response:
            assert refused in {None, response.status}, (path, await response.text())
            assert response.headers.getall("Cache-Control") == ["no-store"], (path, response.status)
