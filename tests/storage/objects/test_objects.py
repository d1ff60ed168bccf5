"""Behaviour that all object stores share."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage.objects import ObjectStore
from streams.tasks import background
from streams.wire.errors import ItemNotFound
from tests.running.object_stores import open_store, s3_server

KEY = "conversation/0198c0de/1/0.mp3"
MIB = 1024 * 1024


pytestmark = pytest.mark.xdist_group("s3")  # One worker imports the S3 server and client.


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture(params=["folder", "bucket"])
async def objects(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    endpoint_url = request.getfixturevalue("s3_url") if request.param == "bucket" else None
    async with open_store(folder=tmp_path, endpoint_url=endpoint_url) as store:
        yield store


async def pieces_of(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def is_stored(objects: ObjectStore, key: str = KEY) -> bool:
    try:
        await objects.stat(key)
    except ItemNotFound:
        return False
    return True


@pytest.mark.parametrize("body", [b"", b"\xff\xfbaudio", bytes(range(256)) * 4096])
async def test_stored_objects_are_returned_unchanged(objects: ObjectStore, body: bytes):
    await objects.put(KEY, body, content_type="audio/mpeg")

    assert await objects.get(KEY) == body
    assert (await objects.stat(KEY)).size_bytes == len(body)


@pytest.mark.parametrize(
    "pieces", [[], [b""], [b"a", b"", b"bc"], [bytes([n]) * MIB for n in range(19)], [b"x" * 8 * MIB]]
)
async def test_body_in_pieces_becomes_one_object(objects: ObjectStore, pieces: list[bytes]):
    await objects.put(KEY, pieces_of(*pieces), content_type="audio/mpeg")

    assert await objects.get(KEY) == b"".join(pieces)


async def test_a_part_of_an_object_can_be_read(objects: ObjectStore):
    body = bytes(range(256)) * 3000
    await objects.put(KEY, body, content_type="audio/mpeg")

    for start, length in [(0, 1), (5, 100), (300_000, 300_000), (767_999, 1), (700_000, None)]:
        async with objects.read(KEY, start=start, length=length) as pieces:
            part = b"".join([piece async for piece in pieces])
        assert part == body[start : None if length is None else start + length]


async def test_second_put_of_a_key_replaces_the_first(objects: ObjectStore):
    await objects.put(KEY, b"first", content_type="audio/mpeg")
    first = await objects.stat(KEY)
    await objects.put(KEY, b"the second", content_type="audio/mpeg")

    assert await objects.get(KEY) == b"the second"
    assert (await objects.stat(KEY)).etag != first.etag


async def test_key_without_an_object_is_not_found(objects: ObjectStore):
    with pytest.raises(ItemNotFound):
        await objects.get(KEY)
    with pytest.raises(ItemNotFound):
        await objects.stat(KEY)
    with pytest.raises(ItemNotFound):
        async with objects.read(KEY):
            pass


async def test_delete_ignores_missing_objects(objects: ObjectStore):
    await objects.put(KEY, b"x", content_type="audio/mpeg")
    await objects.put("conversation/other/1/0.mp3", b"y", content_type="audio/mpeg")

    await objects.delete([KEY, "conversation/0198c0de/2/0.mp3", "never/was.json"])

    assert not await is_stored(objects)
    assert await objects.get("conversation/other/1/0.mp3") == b"y"


@pytest.mark.parametrize("before", [1, 12])
async def test_a_body_that_breaks_off_stores_nothing(objects: ObjectStore, before: int):
    async def broken() -> AsyncIterator[bytes]:
        for _ in range(before):
            yield bytes(MIB)
        raise EOFError("the client left")

    with pytest.raises(EOFError):
        await objects.put(KEY, broken(), content_type="audio/mpeg")

    assert not await is_stored(objects)


async def test_put_that_is_cancelled_stores_nothing(objects: ObjectStore):
    waits = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(12):
            yield bytes(MIB)
        waits.set()
        await asyncio.Event().wait()

    async with background(objects.put(KEY, endless(), content_type="audio/mpeg")):
        await waits.wait()

    assert not await is_stored(objects)


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".mp3",
        "/etc/passwd.json",
        "../secret.json",
        "a/../b.json",
        "a/./b.json",
        "a//b.json",
        "a/.incoming/b.json",
        "a/b",
        "a/b.html",
        "a/b.mp3.gz",
        "a/b.mp3\n",
        "a/b\x00.mp3",
        'a/b".mp3',
        "a\\b.mp3",
        "a/é.mp3",
        "a/b.mp3/",
        "a?b.mp3",
        "a" * 600 + ".mp3",
    ],
)
async def test_keys_that_are_not_plain_paths_are_refused(objects: ObjectStore, key: str):
    with pytest.raises(ValueError, match="key"):
        await objects.put(key, b"x", content_type="audio/mpeg")
    with pytest.raises(ValueError, match="key"):
        await objects.get(key)
    with pytest.raises(ValueError, match="key"):
        await objects.stat(key)
    with pytest.raises(ValueError, match="key"):
        await objects.delete([key])
    with pytest.raises(ValueError, match="key"):
        objects.url(key)


async def test_type_must_be_that_of_the_key(objects: ObjectStore):
    with pytest.raises(ValueError, match="text/html"):
        await objects.put(KEY, b"<script>", content_type="text/html")

    assert not await is_stored(objects)


async def test_lists_of_many_pages_are_complete(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")  # The server of the bucket is in this process.
    keys = [f"speech/a/{day}/{name}.mp3" for day in range(3) for name in ("one", "two")]
    for key in keys:
        await objects.put(key, b"", content_type="audio/mpeg")

    assert sorted(await objects.keys("speech/a/")) == keys
    assert len(set(await objects.keys("speech/a/", limit=3)) & set(keys)) == 3
    assert sorted(await objects.folders("speech/a/")) == ["speech/a/0/", "speech/a/1/", "speech/a/2/"]


async def test_an_available_store_answers_a_ping(objects: ObjectStore):
    await objects.ping()
