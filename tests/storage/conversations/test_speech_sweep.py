"""Cached speech is removed once all links to it have expired, by one process at a time."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from storage.conversations.speech_cache import CachedSpeech, SpeechCache, SpeechKey, viseme_key_of
from storage.conversations.speech_sweep import open_speech_sweep, sweep
from storage.objects import ObjectStore
from storage.valkey.client import Valkey
from storage.valkey.opening import open_valkey
from streams.wire.errors import StoreError
from streams.wire.ids import new_id
from tests.app.valkey_proxy import valkey_proxy_to
from tests.running.object_stores import open_store
from tests.running.servers import Stores
from tests.storage.conversations.speech_sweeps import DAY_S, HOUR_S, pass_s


@pytest.fixture
async def valkey(stores: Stores) -> AsyncIterator[Valkey]:
    async with open_valkey(stores.redis_url, prefix=f"test-{new_id()}:") as opened:
        yield opened


@pytest.fixture
async def objects(tmp_path: Path) -> AsyncIterator[ObjectStore]:
    async with open_store(folder=tmp_path) as store:
        yield store


def key_of(text: str) -> SpeechKey:
    return SpeechKey("app", text, "voice")


async def stored(objects: ObjectStore, text: str) -> CachedSpeech:
    """Store the objects of one synthesis, without an entry in the cache."""
    speech = CachedSpeech(key_of(text).new_name(), "audio/mpeg", 24_000, [5], has_viseme_file=True)
    await objects.put(speech.audio_key, b"audio", content_type="audio/mpeg")
    await objects.put(viseme_key_of(speech.name), b"[]", content_type="application/json")
    return speech


async def cached(valkey: Valkey, objects: ObjectStore, text: str, *, days: float = 1) -> CachedSpeech:
    speech = await stored(objects, text)
    await SpeechCache(valkey).put(key_of(text), speech, days=days)
    return speech


def names(folder: Path) -> set[str]:
    """Return the names of the syntheses that still have an object."""
    return {str(path.relative_to(folder).with_suffix("")) for path in folder.glob("speech-cache/app/*.*")}


async def test_speech_is_removed_with_its_mouth_shapes_once_no_link_to_it_opens(
    valkey: Valkey, objects: ObjectStore, tmp_path: Path
) -> None:
    short = await cached(valkey, objects, "short", days=1)
    long = await cached(valkey, objects, "long", days=7)
    await pass_s(valkey, 2 * DAY_S)
    assert await sweep(valkey, objects) == 0
    assert names(tmp_path) == {short.name, long.name}
    await pass_s(valkey, 2 * HOUR_S)
    assert await sweep(valkey, objects) == 2
    assert names(tmp_path) == {long.name}
    await pass_s(valkey, 6 * DAY_S)
    assert await sweep(valkey, objects) == 2
    assert names(tmp_path) == set()
    await pass_s(valkey, DAY_S)
    assert await sweep(valkey, objects) == 0


async def test_the_days_of_cached_speech_are_counted_from_its_last_use(
    valkey: Valkey, objects: ObjectStore, tmp_path: Path
) -> None:
    said, unsaid = await cached(valkey, objects, "said"), await cached(valkey, objects, "unsaid")
    await pass_s(valkey, DAY_S - HOUR_S)
    await SpeechCache(valkey).touch(key_of("said"), said, days=1)
    await pass_s(valkey, DAY_S + 3 * HOUR_S)
    assert await sweep(valkey, objects) == 2
    assert names(tmp_path) == {said.name} != {unsaid.name}


async def test_unpublished_speech_of_a_dead_process_is_removed(
    valkey: Valkey, objects: ObjectStore, tmp_path: Path
) -> None:
    speech = CachedSpeech(key_of("lost").new_name(), "audio/mpeg", 24_000, [5], has_viseme_file=False)
    await SpeechCache(valkey).announce(speech.name, speech.mime_type, days=1)
    await objects.put(speech.audio_key, b"audio", content_type="audio/mpeg")
    await pass_s(valkey, 3 * DAY_S)
    await sweep(valkey, objects)
    assert names(tmp_path) == set()


async def test_only_one_of_several_concurrent_sweeps_runs(valkey: Valkey, objects: ObjectStore) -> None:
    for text in range(30):
        await cached(valkey, objects, str(text))
    await pass_s(valkey, 3 * DAY_S)
    swept = await asyncio.gather(*(sweep(valkey, objects) for _ in range(5)))
    assert sorted(swept, key=str) == [60, None, None, None, None]
    assert await sweep(valkey, objects) is None


async def test_an_object_that_cannot_be_removed_does_not_delay_others_and_is_retried(
    valkey: Valkey, objects: ObjectStore, tmp_path: Path
) -> None:
    stuck, *_ = [await cached(valkey, objects, str(text)) for text in range(30)]
    path = tmp_path / stuck.audio_key
    path.unlink()
    path.mkdir()  # A folder cannot be removed like a file.
    await pass_s(valkey, 3 * DAY_S)
    removed = 0
    for _ in range(2):
        removed += await sweep(valkey, objects) or 0
        await pass_s(valkey, 0)
    assert removed == 59
    assert names(tmp_path) == {stuck.name}
    path.rmdir()
    path.touch()
    assert await sweep(valkey, objects) == 0
    await pass_s(valkey, HOUR_S)
    assert await sweep(valkey, objects) == 1
    assert names(tmp_path) == set()


async def test_a_sweep_without_valkey_fails_and_the_next_one_succeeds(
    valkey: Valkey, objects: ObjectStore, stores: Stores, tmp_path: Path
) -> None:
    await cached(valkey, objects, "text")
    await pass_s(valkey, 3 * DAY_S)
    prefix = valkey.key("").removesuffix("{}")
    async with (
        valkey_proxy_to(stores.redis_url, tmp_path / "v.sock") as valkey_proxy,
        open_valkey(valkey_proxy.url, prefix=prefix) as behind,
    ):
        await valkey_proxy.stop()
        with pytest.raises(StoreError):
            await sweep(behind, objects)
        await valkey_proxy.start()
        assert await sweep(behind, objects) == 2


class _Watched:
    """An object store that signals when the last of `count` objects is deleted."""

    def __init__(self, objects: ObjectStore, count: int) -> None:
        self._objects = objects
        self._left = count
        self.empty = asyncio.Event()

    async def delete(self, keys: Iterable[str]) -> None:
        keys = list(keys)
        await self._objects.delete(keys)
        self._left -= len(keys)
        if not self._left:
            self.empty.set()


async def test_a_process_sweeps_at_its_start(valkey: Valkey, objects: ObjectStore, tmp_path: Path) -> None:
    await cached(valkey, objects, "text")
    await pass_s(valkey, 3 * DAY_S)
    watched: Any = _Watched(objects, 2)
    async with open_speech_sweep(valkey, watched), asyncio.timeout(10):
        await watched.empty.wait()
    assert names(tmp_path) == set()
