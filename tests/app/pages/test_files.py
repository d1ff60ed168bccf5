"""Files are served by links to players, pages and caches, from both object stores."""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from app.http.callers.caller import Caller
from app.http.rows.endpoint import Call, Endpoint
from app.pages.files import FILE_ROUTES, FileLinkNotFound, FilePath, requested_range
from storage.configs.kinds.limits import Limits
from storage.objects import ObjectStore, open_objects
from tests.running.object_stores import KEYRING, open_store, s3_credentials, s3_server
from tests.running.servers import Server

KEY = "conversation/0198c0de/1/0.mp3"
BODY = bytes(range(256)) * 4


@dataclass(frozen=True)
class Files:
    """The file endpoint over real HTTP, and its object store."""

    http: aiohttp.ClientSession
    objects: ObjectStore
    base: str
    answered: asyncio.Queue[str]
    """Paths of the requests whose handlers have ended."""

    def link(self, key: str = KEY) -> str:
        parts = urlsplit(self.objects.url(key))
        return f"{self.base}{parts.path}?{parts.query}"

    def get(self, link: str | None = None, **headers: str) -> Any:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.get(link or self.link(), headers=headers)


pytestmark = pytest.mark.xdist_group("s3")  # One worker imports the S3 server and client.


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    with s3_credentials():
        yield


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


def handler_of(row: Endpoint, objects: ObjectStore, answered: asyncio.Queue[str]) -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        services: Any = SimpleNamespace(objects=objects)
        try:
            call = Call(request, services, row, Limits(), Caller(app_id="default"))
            return await row.handler(call, path=FilePath(key=request.match_info["key"]))
        except FileLinkNotFound as error:
            return web.Response(status=404, text=str(error))
        finally:
            answered.put_nowait(request.path)

    return handle


@asynccontextmanager
async def serving(objects: ObjectStore) -> AsyncIterator[Files]:
    answered: asyncio.Queue[str] = asyncio.Queue()
    app = web.Application()
    for row in FILE_ROUTES:
        app.router.add_route(row.method, row.path, handler_of(row, objects, answered))
    async with TestServer(app) as server, aiohttp.ClientSession() as http:
        yield Files(http, objects, str(server.make_url("")).rstrip("/"), answered)


@pytest.fixture(params=["folder", "bucket"])
async def files(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Files]:
    endpoint_url = request.getfixturevalue("s3_url") if request.param == "bucket" else None
    async with open_store(folder=tmp_path, endpoint_url=endpoint_url) as objects, serving(objects) as opened:
        await objects.put(KEY, BODY, content_type="audio/mpeg")
        yield opened


async def test_file_is_served_without_any_header(files: Files):
    async with files.get() as response:
        assert response.status == 200
        assert await response.read() == BODY
        assert response.headers["Content-Type"] == "audio/mpeg"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Length"] == str(len(BODY))
        assert response.headers["Accept-Ranges"] == "bytes"
        assert response.headers["Content-Disposition"] == 'inline; filename="0.mp3"'
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        private, max_age = response.headers["Cache-Control"].split(", max-age=")
        assert private == "private"
        assert 86_300 < int(max_age) <= 86_400


@asynccontextmanager
async def forgetful_bucket() -> AsyncIterator[str]:
    """A bucket whose objects are deleted after each request for their size. Yields its server's URL."""

    async def answer(request: web.Request) -> web.Response:
        if request.method == "HEAD":
            headers = {"ETag": '"1"', "Content-Length": "9", "Last-Modified": "Tue, 24 Nov 2026 00:00:00 GMT"}
            return web.Response(headers=headers)
        gone = "<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>"
        return web.Response(status=200 if request.method == "PUT" else 404, text=gone, content_type="text/xml")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def test_file_that_is_deleted_during_its_request_is_not_found(tmp_path: Path):
    async with (
        forgetful_bucket() as url,
        open_store(folder=tmp_path, endpoint_url=url) as objects,
        serving(objects) as files,
        files.get() as response,
    ):
        assert (response.status, await response.text()) == (404, str(FileLinkNotFound(KEY)))


async def test_head_returns_the_headers_of_get(files: Files):
    async with files.get() as got, files.http.head(files.link()) as head:
        assert head.status == 200
        assert await head.read() == b""
        same = {"Content-Length", "Content-Type", "ETag", "Last-Modified", "Accept-Ranges"}
        assert {name: head.headers[name] for name in same} == {name: got.headers[name] for name in same}


async def test_connection_is_reused_after_a_head_request(files: Files):
    for _ in range(2):
        async with files.http.head(files.link(), headers={"Range": "bytes=0-9"}) as head:
            assert (head.status, head.headers["Content-Length"]) == (200, str(len(BODY)))
        async with files.get() as response:
            assert await response.read() == BODY


@pytest.mark.parametrize(
    ("requested", "start", "stop"),
    [
        ("bytes=0-", 0, 1024),
        ("bytes=0-0", 0, 1),
        ("bytes=100-199", 100, 200),
        ("bytes=1000-5000", 1000, 1024),
        ("bytes=-24", 1000, 1024),
        ("bytes=-5000", 0, 1024),
        ("bytes=1023-", 1023, 1024),
    ],
)
async def test_range_is_answered_with_that_part(files: Files, requested: str, start: int, stop: int):
    async with files.get(Range=requested) as response:
        assert response.status == 206
        assert await response.read() == BODY[start:stop]
        assert response.headers["Content-Range"] == f"bytes {start}-{stop - 1}/1024"
        assert response.headers["Content-Type"] == "audio/mpeg"


@pytest.mark.parametrize("requested", ["bytes=1024-", "bytes=9999-10000", "bytes=-0"])
async def test_range_after_the_end_is_refused(files: Files, requested: str):
    async with files.get(Range=requested) as response:
        assert response.status == 416
        assert response.headers["Content-Range"] == "bytes */1024"


@pytest.mark.parametrize("requested", ["bytes=0-1,4-5", "lines=1-2", "bytes=5-2", "bytes=-", "bytes=x-y", "0-5"])
async def test_invalid_range_is_ignored(files: Files, requested: str):
    async with files.get(Range=requested) as response:
        assert response.status == 200
        assert await response.read() == BODY


async def test_client_that_has_the_current_file_gets_no_body(files: Files):
    async with files.get() as response:
        etag, modified = response.headers["ETag"], response.headers["Last-Modified"]

    for headers in ({"If_None_Match": etag}, {"If_None_Match": "*"}, {"If_Modified_Since": modified}):
        async with files.get(**headers) as response:
            assert response.status == 304
            assert await response.read() == b""
    async with files.get(If_None_Match='"other"', If_Modified_Since=modified) as response:
        assert response.status == 200


async def test_range_of_another_version_is_ignored(files: Files):
    async with files.get() as response:
        etag = response.headers["ETag"]

    async with files.get(Range="bytes=0-9", If_Range=etag) as response:
        assert response.status == 206
    async with files.get(Range="bytes=0-9", If_Range='"other"') as response:
        assert (response.status, await response.read()) == (200, BODY)


async def test_empty_file_is_served(files: Files):
    key = "conversation/0198c0de/1/empty.json"
    await files.objects.put(key, b"", content_type="application/json")

    async with files.get(files.link(key)) as response:
        assert (response.status, await response.read()) == (200, b"")
    async with files.get(files.link(key), Range="bytes=0-") as response:
        assert response.status == 416


async def test_large_file_is_served_completely(files: Files):
    key = "conversation/0198c0de/1/long.wav"
    body = bytes(range(256)) * 8192
    await files.objects.put(key, body, content_type="audio/wav")

    async with files.get(files.link(key)) as response:
        assert await response.read() == body
    async with files.get(files.link(key), Range="bytes=1000000-") as response:
        assert await response.read() == body[1_000_000:]


async def test_a_wrong_link_and_a_missing_file_get_the_same_response(files: Files):
    link = files.link()
    expired = link.replace("?e=1", "?e=0")
    wrong = [
        expired,
        link[:-1] + ("A" if link[-1] != "A" else "B"),
        link.partition("&")[0],
        link.partition("?")[0],
        link.replace("/1/0.mp3", "/1/1.mp3"),
        link.replace("/1/0.mp3", "/1/..%2F1%2F0.mp3"),
        link.replace("/1/0.mp3", "/1/0.mp3%00"),
        f"{link}%F0%28",
        f"{files.base}/files/..%2F..%2Fetc%2Fpasswd?{urlsplit(link).query}",
        files.link("conversation/0198c0de/9/never.mp3"),
    ]
    answers = set()
    for url in wrong:
        async with files.http.get(url) as response:
            message = await response.text()
            assert (response.status, message.partition(": ")[0]) == (404, "item_not_found")
            answers.add(message.partition(" does not exist")[2])

    assert answers == {", or its link has expired"}


async def test_deleted_file_is_not_found_although_its_link_is_valid(files: Files):
    link = files.link()
    await files.objects.delete([KEY])

    async with files.get(link) as response:
        assert response.status == 404


async def test_client_that_disconnects_does_not_affect_others(files: Files, caplog: pytest.LogCaptureFixture):
    key = "conversation/0198c0de/1/long.wav"
    await files.objects.put(key, bytes(16 * 1024 * 1024), content_type="audio/wav")
    parts = urlsplit(files.link(key))
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    await reader.readexactly(100_000)
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    assert await files.answered.get() == parts.path

    async with files.get() as response:
        assert await response.read() == BODY
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_response_is_cut_if_the_store_fails_in_the_middle(tmp_path: Path):
    facts = {"Content-Length": "1000", "ETag": '"e"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}

    async def fail_on_the_way(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=facts)
        await response.prepare(request)
        if request.method == "GET":
            await response.write(b"x" * 10)
            assert request.transport is not None
            request.transport.close()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fail_on_the_way)
    async with (
        TestServer(app) as service,
        open_objects(
            folder=tmp_path,
            bucket="bucket",
            endpoint_url=str(service.make_url("/")),
            public_url="http://files.test",
            keyring=KEYRING,
        ) as objects,
        serving(objects) as files,
    ):
        with pytest.raises(aiohttp.ClientError):
            async with files.get() as response:
                await response.read()


@given(header=st.text("bytes=0123456789-, ", max_size=30) | st.none(), size=st.integers(0, 10**6))
def test_no_range_exceeds_the_file(header: str | None, size: int):
    span = requested_range(header, size)

    assert span is None or 0 <= span.start <= span.stop <= size


@given(first=st.integers(0, 2000), last=st.integers(0, 2000), size=st.integers(0, 1500))
def test_ranges_are_slices(first: int, last: int, size: int):
    body = bytes(n % 256 for n in range(size))
    closed = requested_range(f"bytes={first}-{last}", size)
    tail = requested_range(f"bytes=-{last}", size)
    rest = requested_range(f"bytes={first}-", size)

    assert (closed is None) == (last < first)
    assert closed is None or body[closed.start : closed.stop] == body[first : last + 1]
    assert tail is not None
    assert body[tail.start : tail.stop] == (body[-last:] if last else b"")
    assert rest is not None
    assert body[rest.start : rest.stop] == body[first:]


async def test_server_accepts_its_own_links(server: Server):
    objects = server.services.objects
    await objects.put(KEY, BODY, content_type="audio/mpeg")

    async with server.http.get(objects.url(KEY), headers={"Range": "bytes=-24"}) as response:
        assert (response.status, await response.read()) == (206, BODY[-24:])
        assert response.headers["Access-Control-Allow-Origin"] == "*"
    async with server.http.head(objects.url(KEY)) as response:
        assert (response.status, response.headers["Content-Length"]) == (200, "1024")


async def test_server_answers_a_wrong_link_with_the_envelope(server: Server):
    async with server.http.get(f"{server.url}/files/{KEY}?e=1&s=x") as response:
        assert response.status == 404
        assert "item_not_found" in await response.text()
    async with server.http.post(f"{server.url}/files/{KEY}") as response:
        assert (response.status, response.headers["Allow"]) == (405, "GET,HEAD")
