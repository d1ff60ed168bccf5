"""The reference page loads everything from this server."""

import gzip
import hashlib
import json  # noqa: TID251 - an independent reader
import re

import pytest
from multidict import CIMultiDictProxy

from app.http.openapi.document import openapi
from app.pages.assets import STATIC
from app.routes import ROUTES
from tests.running.servers import Server

START = "/docs/static/reference/page.js"
PARTS = ["/openapi.json", "/docs", "/docs/scalar.js", START]
TYPES = {"/openapi.json": "application/json", "/docs": "text/html"}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def test_the_page_loads_everything_from_this_server(server: Server) -> None:
    async with server.http.get(f"{server.url}/docs") as response:
        assert response.status == 200
        policy = dict(rule.split(" ", 1) for rule in response.headers["Content-Security-Policy"].split("; "))
        page = await response.text()
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    sources = re.findall(r'src="([^"]+)"', page)
    assert sources == ["/docs/scalar.js", "/docs/static/reference/session.js", START]
    assert not re.search(r"<(style|script)>|\son\w+=", page)  # The policy forbids inline scripts.
    styles = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page)
    assert styles
    for style in styles:
        async with server.http.get(server.url + style) as response:
            assert (response.status, response.content_type) == (200, "text/css")
    for source in sources:
        async with server.http.get(server.url + source) as response:
            assert response.status == 200
            assert response.content_type == "text/javascript"


async def test_only_files_of_the_page_are_served(server: Server) -> None:
    for part in ("console/page.js", "reference/none.js", "reference/../scalar.js", "../reference.py"):
        async with server.http.get(f"{server.url}/docs/static/{part.replace('..', '%2e%2e')}") as response:
            assert response.status == 404


def test_the_reference_viewer_makes_no_external_requests() -> None:
    started = (STATIC / "reference" / "page.js").read_text()
    assert not re.search(r"https?:", started)
    for setting in ("withDefaultFonts: false", "telemetry: false", "agent: { disabled: true }"):
        assert setting in started


async def test_the_document_contains_the_public_address(server: Server) -> None:
    async with server.http.get(f"{server.url}/openapi.json") as response:
        assert response.status == 200
        document = await response.json()
    assert document == json.loads(json.dumps(openapi(ROUTES, public_url=server.url))), (
        "tests/app/http/openapi/test_openapi.py"
    )
    assert document["servers"] == [{"url": server.url}]
    assert {"/docs", "/openapi.json"} <= document["paths"].keys()


@pytest.mark.parametrize("path", PARTS)
async def test_static_files_are_compressed_and_cached_by_their_etag(server: Server, path: str) -> None:
    async def get(**headers: str) -> tuple[int, CIMultiDictProxy[str], bytes]:
        given = {
            "Accept-Encoding": "identity",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        async with server.http.get(server.url + path, headers=given, auto_decompress=False) as response:
            return response.status, response.headers, await response.read()

    _, plain, body = await get()
    assert "Content-Encoding" not in plain
    assert plain["Content-Type"].startswith(TYPES.get(path, "text/javascript"))
    assert plain["X-Content-Type-Options"] == "nosniff"
    assert plain["Vary"] == "Accept-Encoding"
    for accepted in ("gzip", "br, gzip;q=0.5", "*", "GZIP ; q=1.0"):
        status, packed, sent = await get(Accept_Encoding=accepted)
        assert (status, packed["Content-Encoding"]) == (200, "gzip"), accepted
        assert gzip.decompress(sent) == body
    for accepted in ("gzip;q=0", "br", "gzip; q=0.0, *", "*;q=0", "gzip;q=x"):
        status, headers, sent = await get(Accept_Encoding=accepted)
        assert (status, sent) == (200, body), accepted
        assert "Content-Encoding" not in headers
    assert packed["ETag"] == plain["ETag"]
    for tag in (plain["ETag"], f'"other", {plain["ETag"]}', "*"):
        status, headers, sent = await get(If_None_Match=tag)
        assert (status, sent) == (304, b"")
        assert headers["ETag"] == plain["ETag"]
    assert (await get(If_None_Match='"other"'))[0] == 200


def test_the_viewer_equals_the_file_of_its_package() -> None:
    reported = json.loads((STATIC / "scalar.json").read_text())
    viewer = gzip.decompress((STATIC / "scalar.js.gz").read_bytes())
    assert hashlib.sha256(viewer).hexdigest() == reported["sha256"]
    assert f"{reported['package']} {reported['version']}".encode() in viewer
    assert "Permission is hereby granted, free of charge" in (STATIC / "scalar.LICENSE.txt").read_text()
