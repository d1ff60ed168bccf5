"""Stored configs are read by every process, also those of other versions and invalid ones."""

import asyncio
from decimal import Decimal

import asyncpg
import pytest
from pydantic import Field
from structlog.testing import capture_logs

from storage.configs.kinds import KINDS
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.auth import AUTH
from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.speech import SPEECH, Speech
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from streams.wire.errors import ConfigInvalid, StoreError
from streams.wire.model import Model
from tests.running.config_stores import LOCAL, NOWHERE, store_of
from tests.waiting import until


async def test_a_stored_value_that_has_become_invalid_breaks_only_its_config(settings, configs):
    class Loose(Model):
        account: int
        languages: list[int] = Field(default_factory=list)

    loose = {**KINDS, "speech": ConfigKind("speech", "Speech as it was", Loose)}
    async with store_of(settings, kinds=loose) as old:
        await old.put("default", "speech", "old", {"account": 1}, author="ada", origin=COMMAND)
    await configs.put("default", "speech", "good", {"account": "a"}, author="ada", origin=COMMAND)
    with capture_logs() as lines:
        async with store_of(settings):
            pass
    assert [(line["name"], line["log_level"]) for line in lines if line["event"] == "config.broken"] == [
        ("old", "error")
    ]
    async with store_of(settings) as store:
        with pytest.raises(ConfigInvalid, match=r"^config_invalid: speech old: account must be a string$"):
            store.get(SPEECH, "default", "old")
        assert store.exists(SPEECH, "default", "old")
        assert store.fault(ConfigKey("default", "speech", "old")) == "account must be a string"
        assert store.get(SPEECH, "default", "good").value.account == "a"
        await store.put("default", "speech", "old", {"account": "b"}, author="ada", origin=COMMAND)
        assert store.get(SPEECH, "default", "old").value.account == "b"


async def test_prices_are_the_written_decimals_even_if_they_were_stored_as_floats(settings, configs):
    class FloatPrice(Model):
        input: float

    class FloatSpeech(Model):
        account: str
        price: FloatPrice

    def price(store, name):
        return store.get(SPEECH, "default", name).value.price.input

    floats = {**KINDS, "speech": ConfigKind("speech", "Speech as it was", FloatSpeech)}
    async with store_of(settings, kinds=floats) as old:
        for name, stored in (("whole", 2), ("small", 2e-06), ("sum", 0.1 + 0.2)):
            await old.put(
                "default",
                "speech",
                name,
                {"account": "a", "price": {"input": stored}},
                author="ada",
                origin=COMMAND,
            )
    await configs.put(
        "default", "speech", "new", {"account": "a", "price": {"input": 0.0000015}}, author="ada", origin=COMMAND
    )
    async with store_of(settings) as store:
        assert price(store, "whole") == 2
        assert price(store, "small") == Decimal("0.000002")
        assert price(store, "sum") == Decimal("0.30000000000000004")
        assert price(store, "new") * 3_000_001 == Decimal("4.5000015")
        revision = await store.read(ConfigKey("default", "speech", "new"))
        async with store.editing(author="ada", origin=COMMAND) as edit:
            assert (await edit.converge(revision.key, revision.value)).outcome == "unchanged"


async def test_a_broken_singleton_is_an_error_and_not_replaced_by_defaults(settings, configs):
    class Loose(Model):
        require_sign: str

    async with store_of(settings, kinds={**KINDS, "auth": ConfigKind("auth", "", Loose)}) as old:
        await old.put("default", "auth", "default", {"require_sign": "no"}, author="ada", origin=COMMAND)
    async with store_of(settings) as store:
        with pytest.raises(ConfigInvalid, match="auth default: require_sign must be true or false"):
            store.singleton(AUTH, "default")


async def test_unknown_fields_of_a_newer_version_are_ignored(settings, configs):
    class Newer(Speech):
        whisper: bool = False

    newer = {**KINDS, "speech": ConfigKind("speech", "", Newer), "songs": ConfigKind("songs", "", Newer)}
    async with store_of(settings, kinds=newer) as store:
        await store.put(*LOCAL, {"account": "a", "whisper": True}, author="ada", origin=COMMAND)
        await store.put("default", "songs", "x", {"account": "a"}, author="ada", origin=COMMAND)
    await configs.refresh()
    assert configs.get(SPEECH, "default", "local").value.account == "a"
    await configs.put(*LOCAL, {"account": "b"}, author="ada", origin=COMMAND)
    assert await configs.rollback(LOCAL, 1, author="ada", origin=COMMAND) == 3


@pytest.mark.parametrize("redis_url", ["", NOWHERE], ids=["valkey", "no valkey"])
async def test_a_change_is_seen_by_another_process_within_a_second(settings, redis_url):
    async with store_of(settings, redis_url=redis_url) as writer, store_of(settings, redis_url=redis_url) as reader:
        await writer.put("default", "apps", "default", {}, author="seed", origin=COMMAND)
        await until(lambda: reader.exists(APPS, "default"), within_s=1)
        for number in range(1, 4):
            version = reader.version
            await writer.put(*LOCAL, {"account": f"a{number}"}, author="ada", origin=COMMAND)
            await until(lambda: reader.version > version, within_s=1)  # noqa: B023 - called in this round
            assert reader.get(SPEECH, "default", "local").value.account == f"a{number}"
        await writer.delete(LOCAL, author="ada", origin=COMMAND)
        await until(lambda: not reader.exists(SPEECH, "default", "local"), within_s=1)


async def test_a_process_that_cannot_read_changes_is_not_ready(settings):
    now = 0.0
    async with store_of(settings, clock=lambda: now) as store:
        await store.ping()
        now = 60.0
        with pytest.raises(StoreError, match="configs were last read 60 s ago"):
            await store.ping()


async def test_a_change_feed_query_uses_its_index(settings, configs):
    conn = await asyncpg.connect(settings.direct_url)
    await conn.execute("set enable_seqscan = off")
    rows = await conn.fetch("explain select * from newest_configs where change > 5 order by change")
    await conn.close()
    assert "configs_change" in "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("steps", range(0, 30, 3))
async def test_a_store_can_be_closed_immediately_after_it_was_opened(settings, steps):
    async with asyncio.timeout(5):
        async with store_of(settings):
            for _ in range(steps):
                await asyncio.sleep(0)
