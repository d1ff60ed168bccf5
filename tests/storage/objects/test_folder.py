"""Objects in a folder are complete or missing, and leave no other files."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.objects import ObjectStore
from streams.wire.errors import ItemNotFound, StoreError
from tests.calendar.clock import epoch_s
from tests.running.object_stores import open_store

KEY = "conversation/0198c0de/1/0.mp3"


@pytest.fixture
async def objects(tmp_path: Path) -> AsyncIterator[ObjectStore]:
    async with open_store(folder=tmp_path) as store:
        yield store


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_reader_gets_the_old_object_until_the_new_one_is_complete(objects: ObjectStore):
    await objects.put(KEY, b"old", content_type="audio/mpeg")
    seen = []

    async def body() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"new" * 200_000
            seen.append(await objects.get(KEY))

    await objects.put(KEY, body(), content_type="audio/mpeg")

    assert seen == [b"old"] * 3
    assert await objects.get(KEY) == b"new" * 600_000


async def test_failed_puts_leave_no_other_files(objects: ObjectStore, tmp_path: Path):
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 1_000_000
        raise EOFError

    await objects.put(KEY, b"x", content_type="audio/mpeg")
    with pytest.raises(EOFError):
        await objects.put("conversation/0198c0de/2/0.mp3", broken(), content_type="audio/mpeg")

    assert files_below(tmp_path) == [KEY]


async def test_folders_are_removed_with_their_last_object(objects: ObjectStore, tmp_path: Path):
    other = "conversation/0198c0de/2/0.mp3"
    await objects.put(KEY, b"x", content_type="audio/mpeg")
    await objects.put(other, b"x", content_type="audio/mpeg")

    await objects.delete([KEY])
    assert not (tmp_path / KEY).parent.exists()
    assert (tmp_path / other).exists()
    await objects.delete([other])
    assert not (tmp_path / "conversation").exists()
    await objects.put(KEY, b"again", content_type="audio/mpeg")
    assert await objects.get(KEY) == b"again"


async def test_objects_remain_after_the_end_of_the_process(tmp_path: Path):
    async with open_store(folder=tmp_path) as before:
        await before.put(KEY, b"kept", content_type="audio/mpeg")
    async with open_store(folder=tmp_path) as after:
        assert await after.get(KEY) == b"kept"


async def test_incomplete_files_of_a_dead_process_are_removed_after_a_day(tmp_path: Path):
    incoming = tmp_path / ".incoming"
    incoming.mkdir()
    (incoming / "old").write_bytes(b"half")
    (incoming / "young").write_bytes(b"half")
    now = epoch_s()
    yesterday = now - 25 * 60 * 60
    os.utime(incoming / "old", (yesterday, yesterday))
    os.utime(incoming / "young", (now, now))

    async with open_store(folder=tmp_path):
        assert files_below(tmp_path) == [".incoming/young"]


async def test_missing_folder_makes_the_store_unavailable(objects: ObjectStore, tmp_path: Path):
    shutil.rmtree(tmp_path / ".incoming")

    with pytest.raises(StoreError) as unavailable:
        await objects.ping()
    assert (unavailable.value.error_type, unavailable.value.status) == ("internal", 503)
    with pytest.raises(StoreError) as refused:
        await objects.put(KEY, b"x", content_type="audio/mpeg")
    assert refused.value.error_type == "internal"


async def test_error_of_the_disk_is_internal_and_not_a_missing_file(objects: ObjectStore):
    await objects.put("a/b.mp3", b"x", content_type="audio/mpeg")

    with pytest.raises(StoreError, match="internal: the object store refused"):
        await objects.put("a/b.mp3/c.mp3", b"x", content_type="audio/mpeg")
    with pytest.raises(ItemNotFound):
        await objects.get("a/b.mp3/c.mp3")
    await objects.delete(["a/b.mp3/c.mp3"])


async def test_put_and_delete_in_one_folder_do_not_hinder_each_other(objects: ObjectStore):
    async def come_and_go(number: int) -> None:
        for _ in range(10):
            await objects.put(f"a/b/{number}.bin", b"x", content_type="application/octet-stream")
            await objects.delete([f"a/b/{number}.bin"])

    await asyncio.gather(*map(come_and_go, range(6)))
