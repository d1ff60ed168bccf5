"""Large files are uploaded to a bucket in parts, and never are in memory as a whole."""

import asyncio
import sys
import tracemalloc
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from storage.objects import ObjectStore
from streams.wire.errors import StoreError
from tests.running.object_stores import new_bucket, s3_client, s3_credentials, s3_server
from tests.storage.objects.s3_services import PartService, store_at

KEY = "exports/default/u/large.json"
TYPE = "application/json"
MIB = 1024 * 1024
_PART = 8 * MIB
_FEW = 48 * MIB
"""A few copies of a part: that of the store, the one that is signed, and those in buffers of both ends."""

pytestmark = pytest.mark.xdist_group("s3")  # One worker imports the S3 server and client.


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    with s3_credentials():
        yield


async def pieces_of(size_bytes: int, piece_bytes: int) -> AsyncIterator[bytes]:
    whole = bytes(piece_bytes)
    for at in range(0, size_bytes, piece_bytes):
        yield whole[: size_bytes - at]


@pytest.mark.parametrize("piece_bytes", [5_000_000, 20 * MIB])
async def test_all_parts_but_the_last_have_the_same_size(piece_bytes: int):
    service, size_bytes = PartService(), 20 * MIB
    async with service.opened() as objects:
        await objects.put(KEY, pieces_of(size_bytes, piece_bytes), content_type=TYPE)

    assert service.steps == ["create", "part 1", "part 2", "part 3", "complete"]
    assert service.sizes == [_PART, _PART, 4 * MIB]


async def test_large_body_in_memory_is_uploaded_in_parts_and_a_small_one_at_once():
    service = PartService()
    async with service.opened() as objects:
        await objects.put(KEY, bytes(_PART + 1), content_type=TYPE)
        await objects.put(KEY, bytes(_PART - 1), content_type=TYPE)

    assert service.steps == ["create", "part 1", "part 2", "complete", "put"]
    assert service.sizes == [_PART, 1, _PART - 1]


@pytest.mark.parametrize("fault", ["InternalError", "cut"])
async def test_only_the_part_that_failed_is_sent_again(fault: str):
    service = PartService({"part 2": [fault], "complete": [fault]})
    async with service.opened() as objects:
        await objects.put(KEY, pieces_of(3 * _PART, MIB), content_type=TYPE)

    assert service.steps == ["create", "part 1", "part 2", "part 2", "part 3", "complete", "complete"]
    assert service.sizes == [_PART] * 3


@pytest.mark.parametrize(("failing", "abort"), [("part 2", []), ("complete", ["cut"] * 3)])
async def test_upload_whose_service_fails_is_aborted(failing: str, abort: list[str]):
    service = PartService({failing: ["LateError"] * 3, "abort": abort})
    async with service.opened() as objects:
        with pytest.raises(StoreError, match="not reachable") as failed:
            await objects.put(KEY, pieces_of(2 * _PART, MIB), content_type=TYPE)

    assert failed.value.status == 503
    assert service.steps.count(failing) == 3
    assert service.steps[-1] == "abort"


async def test_file_of_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("storage.objects.s3._MAX_PARTS", 2)
    service = PartService()
    async with service.opened() as objects:
        await objects.put(KEY, pieces_of(2 * _PART, MIB), content_type=TYPE)
        with pytest.raises(StoreError, match="internal: the object store refused: a file would be too large"):
            await objects.put(KEY, pieces_of(2 * _PART + 1, MIB), content_type=TYPE)

    assert service.steps[-2:] == ["part 2", "abort"]


async def test_a_file_of_200_mb_never_is_in_memory_as_a_whole():
    size_bytes = 200 * MIB
    service = PartService(file_bytes=size_bytes)
    async with service.opened() as objects:
        tracemalloc.start(1)
        try:
            await objects.put(KEY, pieces_of(size_bytes, MIB), content_type=TYPE)
            stored = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            read_bytes = await size_of(objects)
            read = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert sum(service.sizes) == read_bytes == size_bytes
    assert stored < _FEW
    assert read < _FEW


async def size_of(objects: ObjectStore) -> int:
    size_bytes = 0
    async with objects.read(KEY) as pieces:
        async for piece in pieces:
            size_bytes += len(piece)
    return size_bytes


_ENDLESS = """
import asyncio, sys
from tests.storage.objects.s3_services import store_at

async def body():
    for _ in range(20):
        yield bytes(1024 * 1024)
    print("uploading", flush=True)
    await asyncio.Event().wait()

async def upload():
    async with store_at(sys.argv[1], sys.argv[2]) as objects:
        await objects.put(sys.argv[3], body(), content_type="application/json")

asyncio.run(upload())
"""


async def open_uploads(endpoint_url: str, bucket: str) -> list[dict[str, Any]]:
    async with s3_client(endpoint_url) as client:
        found = await client.list_multipart_uploads(Bucket=bucket)
    uploads: list[dict[str, Any]] = found.get("Uploads", [])
    return uploads


async def test_only_a_killed_process_leaves_an_upload_open_and_none_leaves_an_object():
    async def broken() -> AsyncIterator[bytes]:
        async for piece in pieces_of(17 * MIB, MIB):
            yield piece
        raise EOFError

    with s3_server() as url:
        async with new_bucket(url) as bucket, store_at(url, bucket) as objects:
            with pytest.raises(EOFError):
                await objects.put(KEY, broken(), content_type=TYPE)
            after_error = await open_uploads(url, bucket)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _ENDLESS, url, bucket, KEY), stdin=DEVNULL, stdout=PIPE
            )
            assert process.stdout is not None
            assert await process.stdout.readline() == b"uploading\n"
            process.kill()
            await process.wait()
            after_kill = await open_uploads(url, bucket)
            left = await objects.keys("")

    assert after_error == []
    assert [upload["Key"] for upload in after_kill] == [KEY]
    assert left == []
