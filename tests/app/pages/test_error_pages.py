"""Browsers that open an address without a page get a page, and programs get the error envelope."""

import re
from dataclasses import replace
from typing import Any

import pytest

from app.settings import Settings
from streams.wire.codec import loads
from tests.running.servers import Server

CHROMIUM = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7"
)
PATHS = {
    "/nothing": (404, "Page not found"),
    "/?app=nosuch": (404, "Page not found"),
    "/dev/nothing": (404, "Page not found"),
    "/static/talk/nothing.js": (404, "Page not found"),
    "/admin/api/nothing": (404, "Page not found"),
    "/bp/user/login": (405, "This address is not a page"),
    "/files/conversation/nobody/1/0.mp3?e=1&s=x": (404, "This file is not available"),
    "/files/x": (404, "This file is not available"),
}
PROGRAMS = [
    "*/*",
    "application/json",
    "application/json, text/plain, */*",
    "text/html, application/json",
    "text/html;q=0.5, application/json;q=0.9",
    "text/html;q=0, */*",
    "text/html;q=x, */*",
    "",
]


@pytest.fixture
def settings(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    return replace(settings, env=getattr(request, "param", settings.env))


async def get(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[Any, str]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with server.http.request(method, server.url + path, headers=given) as response:
        return response, await response.text()


async def test_browsers_get_a_page_and_programs_the_envelope(server: Server):
    for path, (status, title) in PATHS.items():
        response, page = await get(server, path, Accept=CHROMIUM)
        assert (response.status, response.content_type) == (status, "text/html"), path
        assert f"<h1>{title}</h1>" in page
        assert "<script" not in page
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'; style-src 'sha256-" in policy
        assert "unsafe" not in policy
        for accept in PROGRAMS:
            other, body = await get(server, path, Accept=accept)
            assert (other.status, other.content_type) == (status, "application/json"), (path, accept)
            assert set(loads(body)["error"]) == {"error_type", "message"}
            for both in (response, other):
                assert both.headers["Vary"] == "Accept"
                assert both.headers["Cache-Control"] == "no-store"
            assert other.headers.get("Allow") == response.headers.get("Allow")


async def test_the_page_of_an_address_does_not_depend_on_the_address(server: Server):
    paths = ("/nothing", "/admin/api/users/default/nobody/nothing", "/bp/ai/nothing/x%22%3E%3Cscript%3E")
    assert len({(await get(server, path, Accept=CHROMIUM))[1] for path in paths}) == 1


async def test_the_page_names_the_pages_of_a_development_server(server: Server):
    _, page = await get(server, "/nothing", Accept=CHROMIUM)
    card = page.partition("<main>")[2]
    links = re.findall(r'href="([^"]+)"', card)
    assert links == ["/", "/docs", "/dev/mail"]
    for path in links:
        response, _ = await get(server, path, Accept=CHROMIUM)
        assert response.status != 404  # This server has no inbox whose emails it could show.


@pytest.mark.parametrize("settings", ["production"], indirect=True)
async def test_the_page_names_no_page_that_the_server_does_not_show(server: Server):
    for path in ("/dev/mail", "/", "/docs", "/console"):
        response, page = await get(server, path, Accept=CHROMIUM)
        assert (response.status, response.content_type) == (404, "text/html"), path
        assert 'href="/' not in page
        text = re.sub("<[^>]+>", "", page.partition("<body")[2])
        for word in ("API reference", "Console", "config", "playground"):
            assert word not in text, path


async def test_calls_of_the_interface_get_the_envelope_whatever_they_accept(server: Server):
    """The standard library of Java asks for `text/html` unless it is told otherwise."""
    java = "text/html, image/gif, image/jpeg, */*; q=0.2"
    for headers in ({"X_Service_App_Id": "default"}, {"Authorization": "Bearer x"}):
        response, _ = await get(server, "/bp/ai/nothing", Accept=java, **headers)
        assert (response.status, response.content_type) == (404, "application/json")


async def test_other_methods_and_other_errors_get_the_envelope(server: Server):
    response, _ = await get(server, "/nothing", "POST", Accept=CHROMIUM)
    assert (response.status, response.content_type) == (404, "application/json")
    response, _ = await get(server, "/bp/user/me", Accept=CHROMIUM)
    assert (response.status, response.content_type) == (400, "application/json")
    response, body = await get(server, "/nothing", "HEAD", Accept=CHROMIUM)
    assert (response.status, response.content_type, body) == (404, "text/html", "")
