"""The headers of the console's page, of its files, and of what it reads."""

import re

import pytest

from app.pages.assets import STATIC
from tests.running.servers import ADMIN_TOKEN, Server

FILES = sorted(f"/console/static/{path.relative_to(STATIC)}" for path in (STATIC / "console").glob("*.[cj]s*"))
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "media-src": "blob:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def test_the_console_runs_no_script_of_others_and_in_no_frame_of_others(server: Server) -> None:
    assert len(FILES) > 20
    for path in ("/console", "/console/", *FILES):
        async with server.http.get(server.url + path) as response:
            assert response.status == 200, path
            headers = response.headers
            policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
            assert policy == POLICY, path
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            # The files have nothing of operators or users. Browsers ask each time whether they are current.
            assert headers["Cache-Control"] == "no-cache"
            assert headers["Content-Type"].partition(";")[0] in {"text/html", "text/css", "text/javascript"}


async def test_the_page_has_no_script_or_style_of_its_own(server: Server) -> None:
    async with server.http.get(f"{server.url}/console") as response:
        page = await response.text()
    assert not re.search(r"<style|<script(?! type=\"module\" src=)|\s(?:on\w+|style)=|https?:", page)


async def test_what_the_console_reads_and_its_session_are_stored_by_no_cache(server: Server) -> None:
    admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    for method, path, status in (
        ("GET", "/admin/api/self", 200),
        ("GET", "/admin/api/operators", 200),
        ("GET", "/admin/api/mismatches", 404),
        ("POST", "/admin/api/session", 400),
    ):
        async with server.http.request(method, server.url + path, headers=admin) as response:
            assert (response.status, response.headers["Cache-Control"]) == (status, "no-store")
