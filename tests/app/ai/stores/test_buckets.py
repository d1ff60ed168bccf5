"""Nodes share a bucket: the files of one are read on the others. A node that is cut off from it goes on without."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from app.settings import Settings
from storage.configs.kinds.conversation import CONVERSATION
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import text_of
from tests.app.ai.speech.cached_speech import tts, voice
from tests.app.ai.speech.speech import audio_of, fetch
from tests.deploy.serving import serving
from tests.peers.sse_client import all_events, named
from tests.running.another_server import another_server
from tests.running.object_stores import new_bucket, s3_credentials, s3_server
from tests.running.s3_proxy import S3Proxy, s3_proxy
from tests.running.servers import Server, listening_socket
from tests.waiting import until
from vendors.sandbox.server import Running

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)

pytestmark = pytest.mark.xdist_group("s3")  # One worker imports the S3 server and client.


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
async def settings(settings: Settings, s3_url: str) -> AsyncIterator[Settings]:
    with s3_credentials():
        async with new_bucket(s3_url) as bucket:
            yield replace(settings, s3_bucket=bucket, s3_endpoint_url=s3_url)


@dataclass
class CutNode:
    """A node, and its way to the bucket, which can be cut."""

    server: Server
    s3: S3Proxy


@pytest.fixture
async def cut(server: Server, s3_url: str) -> AsyncIterator[CutNode]:
    async with (
        s3_proxy(s3_url) as proxy,
        another_server(server.services.settings, s3_endpoint_url=proxy.url) as running,
    ):
        yield CutNode(running, proxy)


def on(node: str, link: str) -> str:
    """Return a link with the address of another node."""
    parts = urlsplit(link)
    return f"{node}{parts.path}?{parts.query}"


async def speak(talk: Talk) -> str:
    """Have a text spoken. Return the link to the audio."""
    async with tts(talk) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end", seen[-1]
    link: str = named(seen, "audio")[0]["audio_url"]
    return link


async def test_audio_that_one_process_stored_is_read_by_another(
    talk: Talk, server: Server, sandbox: Running, settings: Settings
) -> None:
    await voice(server, sandbox)
    with listening_socket() as free:
        port = free.getsockname()[1]
    async with serving(settings, PORT=str(port), PARLEY_PROCESSES="1") as process:
        await process.event("server.listening")
        link = await speak(talk)
        audio = await fetch(talk, link)
        there = on(f"http://127.0.0.1:{port}", link)
        async with ClientSession() as http:
            async with http.head(there) as head:
                assert (head.status, head.content_length) == (200, len(audio))
            async with http.get(there, headers={"Range": "bytes=100-299"}) as part:
                assert (part.status, await part.read()) == (206, audio[100:300])
                assert part.headers["Content-Range"] == f"bytes 100-299/{len(audio)}"
                assert part.headers["ETag"] == head.headers["ETag"]
            async with http.get(there) as whole:
                assert (whole.status, await whole.read()) == (200, audio)


async def test_a_node_without_its_bucket_answers_503_for_files_and_goes_on_with_streams(
    talk: Talk, server: Server, cut: CutNode, sandbox: Running, strategy: Callable[..., Awaitable[None]]
) -> None:
    node = cut.server
    await voice(server, sandbox, cache=False)
    await strategy("one", "say:Good morning")
    await until(lambda: node.services.configs.exists(CONVERSATION, "default", "one"))
    link, there = await speak(talk), Talk(node, talk.uid, talk.token)
    assert await file_status(node, link) == (200, None)

    cut.s3.is_cut = True
    assert await file_status(node, link) == (503, "1")
    async with there.get("/readyz") as ready:
        assert (ready.status, (await ready.json())["parts"]["objects"]) == (200, "degraded")
    async with node.http.put(
        f"{node.url}/bp/ai/upload", data=PNG, headers={"X-Service-Session-Token": talk.token}
    ) as upload:
        assert (upload.status, upload.headers["Retry-After"]) == (503, "1")
    turn = await there.turn("Hello", "one")
    assert text_of(turn) == "Good morning"
    assert turn[-1].name == "end"
    async with tts(there) as response:
        seen = await all_events(response)
    assert audio_of(named(seen, "audio_chunk"))
    error: dict[str, Any] = seen[-1].content["error"]
    assert (seen[-1].name, error["error_type"], error["extra"]["retryable"]) == ("error", "internal", True)
    assert await file_status(server, link) == (200, None), "other nodes still reach the bucket"

    cut.s3.is_cut = False
    assert await file_status(node, link) == (200, None)
    assert await file_status(server, await speak(there)) == (200, None)


async def file_status(server: Server, link: str) -> tuple[int, str | None]:
    """Return the status of a file on a node, and in how many seconds a client should try again."""
    async with server.http.get(on(server.url, link)) as response:
        return response.status, response.headers.get("Retry-After")
