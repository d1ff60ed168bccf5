"""In production the public port shows `/metrics` and the reference only where that is configured."""

from dataclasses import replace

import pytest

from app.settings import Settings
from tests.running.servers import Server

METRICS = ("/metrics", "/metrics/")
DOCS = ("/docs", "/docs/", "/docs/scalar.js", "/docs/static/reference/page.js", "/openapi.json")


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return replace(settings, env="production", **request.param)


async def statuses(server: Server, *paths: str) -> set[int]:
    found = set()
    for path in paths:
        async with server.http.get(server.url + path) as response:
            found.add(response.status)
    return found


@pytest.mark.parametrize("settings", [{}], indirect=True, ids=["default"])
async def test_in_production_metrics_and_reference_respond_like_an_unknown_path(server: Server) -> None:
    for path in (*METRICS, *DOCS, "/docs/guides/mail"):
        for method in ("GET", "POST"):
            answers = []
            for requested in (path, "/nothing"):
                async with server.http.request(method, server.url + requested) as response:
                    answers.append((response.status, (await response.text()).replace(requested, "<path>")))
            assert answers[0] == answers[1]
            assert answers[0][0] == 404
    assert await statuses(server, "/healthz", "/readyz") == {200}


@pytest.mark.parametrize(
    ("settings", "shown", "hidden"),
    [({"public_metrics": True}, METRICS, DOCS), ({"public_docs": True}, DOCS, METRICS)],
    indirect=["settings"],
    ids=["metrics", "docs"],
)
async def test_metrics_and_reference_are_public_if_configured(
    server: Server, shown: tuple[str, ...], hidden: tuple[str, ...]
) -> None:
    assert await statuses(server, *shown) == {200}
    assert await statuses(server, *hidden) == {404}


@pytest.mark.parametrize("settings", [{"public_docs": True}], indirect=True, ids=["public"])
async def test_in_production_the_reference_offers_no_session(server: Server) -> None:
    async with server.http.get(f"{server.url}/docs") as response:
        page = await response.text()
    assert "/docs/static/reference/page.js" in page
    assert "session.js" not in page
