"""Named configs: every change is a revision."""

import asyncio

import pytest

from storage.configs.kinds import KINDS
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.limits import LIMITS
from storage.configs.kinds.speech import SPEECH, Speech
from storage.configs.rows import ConfigKey
from storage.configs.rules import Checked, Fault, Named, Unknown
from storage.operators.audit import COMMAND
from streams.wire.errors import InvalidParameter, ItemNotFound, ServiceError
from streams.wire.model import Model
from tests.running.config_stores import LOCAL, NOWHERE, api_key, store_of
from tests.waiting import until


async def test_a_written_config_is_read_typed_with_its_revision(configs):
    revision = await configs.put(
        "default", "speech", "local", {"account": "a", "speed": 2}, author="ada", origin=COMMAND
    )
    active = configs.get(SPEECH, "default", "local")
    speech: Speech = active.value
    assert (revision, active.revision) == (1, 1)
    assert (speech.account, speech.speed, speech.audio_format) == ("a", 2.0, "mp3")
    assert configs.exists(SPEECH, "default", "local")
    assert configs.names(SPEECH, "default") == ["local"]


async def test_a_missing_config_is_not_found_and_a_missing_singleton_has_its_defaults(configs):
    assert not configs.exists(SPEECH, "default", "local")
    assert configs.names(SPEECH, "default") == []
    with pytest.raises(ItemNotFound, match="speech local does not exist"):
        configs.get(SPEECH, "default", "local")
    assert configs.singleton(LIMITS, "default") == LIMITS.model()
    await configs.put("default", "limits", "default", {"tts_characters": 7}, author="ada", origin=COMMAND)
    assert configs.singleton(LIMITS, "default").tts_characters == 7
    assert configs.singleton(LIMITS, "other").tts_characters == 4096


async def test_apps_do_not_see_each_others_configs(configs):
    await configs.put("two", "apps", "default", {"title": "Two"}, author="ada", origin=COMMAND)
    await configs.put("two", "speech", "local", {"account": "b"}, author="ada", origin=COMMAND)
    assert configs.exists(APPS, "two")
    assert configs.names(SPEECH, "default") == []
    assert configs.get(SPEECH, "two", "local").value.account == "b"


async def test_revisions_are_numbered_from_one_for_each_name_and_all_stored(configs):
    for voice in ("x", "y"):
        await configs.put(
            "default", "speech", "local", {"account": "a", "voice": voice}, author=voice, origin=COMMAND
        )
    await configs.put("default", "speech", "other", {"account": "a"}, author="ada", origin=COMMAND, comment="why")
    old = await configs.read(LOCAL, revision=1)
    assert (old.value, old.author) == ({"account": "a", "voice": "x"}, "x")
    assert [entry.revision for entry in await configs.history(LOCAL)] == [2, 1]
    assert [entry.revision for entry in await configs.history(LOCAL, before=2, limit=1)] == [1]
    other = await configs.read(ConfigKey("default", "speech", "other"))
    assert (other.revision, other.comment) == (1, "why")


async def test_a_rollback_is_a_new_revision_with_the_old_value(configs):
    await configs.put("default", "speech", "local", {"account": "a", "voice": "x"}, author="ada", origin=COMMAND)
    await configs.put("default", "speech", "local", {"account": "a", "voice": "y"}, author="ada", origin=COMMAND)
    assert await configs.rollback(LOCAL, 1, author="bob", origin=COMMAND) == 3
    assert configs.get(SPEECH, "default", "local").value.voice == "x"
    newest = await configs.read(LOCAL)
    assert (newest.author, newest.comment) == ("bob", "rollback to revision 1")


async def test_a_rollback_keeps_the_secrets_of_its_revision(configs):
    key = ConfigKey("default", "vendor_accounts", "main")
    await configs.put(*key, {"platform": "p", "api_key": "sk-old"}, author="ada", origin=COMMAND)
    await configs.put(*key, {"platform": "p", "api_key": "sk-new"}, author="ada", origin=COMMAND)
    await configs.rollback(key, 1, author="ada", origin=COMMAND)
    assert api_key(configs) == "sk-old"


async def test_a_rollback_to_a_missing_revision_is_refused(configs):
    await configs.put(*LOCAL, {"account": "a"}, author="ada", origin=COMMAND)
    await configs.delete(LOCAL, author="ada", origin=COMMAND)
    with pytest.raises(InvalidParameter, match="revision 2 is a deletion"):
        await configs.rollback(LOCAL, 2, author="ada", origin=COMMAND)
    with pytest.raises(ItemNotFound, match="revision 9 of speech local does not exist"):
        await configs.rollback(LOCAL, 9, author="ada", origin=COMMAND)


async def test_a_deleted_config_is_not_found_and_can_be_rolled_back(configs):
    await configs.put(*LOCAL, {"account": "a"}, author="ada", origin=COMMAND)
    assert await configs.delete(LOCAL, author="ada", origin=COMMAND) == 2
    assert not configs.exists(SPEECH, "default", "local")
    for again in (configs.read(LOCAL), configs.delete(LOCAL, author="ada", origin=COMMAND)):
        with pytest.raises(ItemNotFound):
            await again
    assert [entry.deleted for entry in await configs.history(LOCAL)] == [True, False]
    assert await configs.rollback(LOCAL, 1, author="ada", origin=COMMAND) == 3
    assert configs.get(SPEECH, "default", "local").revision == 3


async def test_only_the_expected_revision_is_replaced(configs):
    await configs.put(*LOCAL, {"account": "a"}, author="ada", origin=COMMAND)
    await configs.put(*LOCAL, {"account": "b"}, author="ada", origin=COMMAND, if_match=1)
    for late in (
        configs.put(*LOCAL, {"account": "c"}, author="bob", origin=COMMAND, if_match=1),
        configs.delete(LOCAL, author="bob", origin=COMMAND, if_match=1),
        configs.rollback(LOCAL, 1, author="bob", origin=COMMAND, if_match=1),
        configs.put("default", "speech", "new", {"account": "c"}, author="bob", origin=COMMAND, if_match=1),
    ):
        with pytest.raises(ServiceError) as caught:
            await late
        assert (caught.value.error_type, caught.value.status) == ("invalid_operation", 412)
    assert configs.get(SPEECH, "default", "local").value.account == "b"


async def test_one_of_several_writers_that_expect_the_same_revision_succeeds(settings, configs):
    await configs.put(*LOCAL, {"account": "a"}, author="ada", origin=COMMAND)
    async with store_of(settings) as other:
        outcomes = await asyncio.gather(
            *(
                store.put(*LOCAL, {"account": "b"}, author="bob", origin=COMMAND, if_match=1)
                for store in (configs, other, configs, other)
            ),
            return_exceptions=True,
        )
    assert [getattr(outcome, "status", outcome) for outcome in outcomes].count(412) == 3
    assert 2 in outcomes


@pytest.mark.parametrize(
    ("kind", "name", "value", "what"),
    [
        ("speech", "local", {}, "account is required"),
        ("speech", "local", {"account": "a", "waits": {"between_s": "1"}}, "waits.between_s must be a number"),
        ("speech", "local", {"account": "a", "wiats": {}}, "wiats is not a field"),
        ("speech", "local", {"account": "a", "price": {"in": 1}}, "price.in is not a field"),
        ("speech", "local", [], "value must be an object"),
        ("auth", "default", {"sign_keys": [{"id": "k"}]}, r"sign_keys\[0\].key is required"),
        ("auth", "second", {}, "name must be default"),
        ("speech", "..", {"account": "a"}, "name must be 1 to 64"),
        ("speech", "a/b", {"account": "a"}, "name must be 1 to 64"),
        ("speech", "x" * 65, {"account": "a"}, "name must be 1 to 64"),
        ("vendor_accounts", "m", {"platform": "p", "api_key": {"secret": True}}, "api_key has no stored secret"),
    ],
)
async def test_error_for_an_invalid_value_has_the_path_of_the_field(configs, kind, name, value, what):
    with pytest.raises(InvalidParameter, match=f"^invalid_parameter: {what}"):
        await configs.put("default", kind, name, value, author="ada", origin=COMMAND)
    assert configs.names(KINDS[kind], "default") == []


async def test_an_unknown_kind_is_not_found_and_an_unknown_app_is_named(configs):
    with pytest.raises(ItemNotFound, match="kind poetry does not exist"):
        await configs.put("default", "poetry", "x", {}, author="ada", origin=COMMAND)
    with pytest.raises(ServiceError, match=r"^app_not_found: app two does not exist"):
        await configs.put("two", "speech", "x", {"account": "a"}, author="ada", origin=COMMAND)


async def test_a_written_value_is_passed_to_the_check_of_vendors(settings):
    def check(key: ConfigKey, value: Model, named: Named, unknown: Unknown) -> Checked:
        wrong = isinstance(value, Speech) and "pitch" in value.options
        return Checked(value, [Fault("options.pitch", "is not a field")] if wrong else [])

    async with store_of(settings, check=check) as store:
        await store.put("default", "apps", "default", {}, author="seed", origin=COMMAND)
        await store.put(*LOCAL, {"account": "a"}, author="ada", origin=COMMAND)
        bad = {"account": "a", "options": {"pitch": 2}}
        with pytest.raises(InvalidParameter, match=r"^invalid_parameter: options\.pitch is not a field"):
            await store.put(*LOCAL, bad, author="ada", origin=COMMAND)
        assert await store.judge(LOCAL, bad) == [Fault("options.pitch", "is not a field")]


async def test_a_write_succeeds_if_it_cannot_be_announced(settings):
    async with store_of(settings, redis_url=NOWHERE) as store:
        await store.put("default", "apps", "default", {}, author="seed", origin=COMMAND)
        assert store.exists(APPS, "default")


async def test_concurrent_writers_in_two_processes_lose_no_change(settings, configs):
    async with store_of(settings) as other:
        await asyncio.gather(
            *(
                store.put("default", "speech", f"s{number}", {"account": "a"}, author="ada", origin=COMMAND)
                for number, store in enumerate((configs, other) * 8)
            )
        )
        await until(lambda: configs.version == other.version, within_s=1)
        assert len(configs.names(SPEECH, "default")) == len(other.names(SPEECH, "default")) == 16


async def test_several_changes_are_one_transaction(configs):
    async def two() -> None:
        async with configs.editing(author="ada", origin=COMMAND) as edit:
            await edit.put(LOCAL, {"account": "a"})
            await edit.put(ConfigKey("default", "speech", "bad"), {})

    with pytest.raises(InvalidParameter):
        await two()
    assert configs.names(SPEECH, "default") == []
    async with configs.editing(author="ada", origin=COMMAND, dry_run=True) as edit:
        assert await edit.put(LOCAL, {"account": "a"}) == 1
    await configs.refresh()
    assert configs.names(SPEECH, "default") == []


async def test_differences_are_named_by_their_paths(configs):
    await configs.put(
        "default", "auth", "default", {"sign_keys": [{"id": "a", "key": "1"}]}, author="ada", origin=COMMAND
    )
    keys = [{"id": "a", "key": "2"}, {"id": "b", "key": "3"}]
    await configs.put(
        "default", "auth", "default", {"sign_keys": keys, "require_sign": False}, author="ada", origin=COMMAND
    )
    found = await configs.diff(ConfigKey("default", "auth", "default"), before=1, after=2)
    mark = {"secret": True}
    assert {entry.path: entry.after for entry in found} == {
        "sign_keys[0].key": mark,
        "sign_keys[1]": {"id": "b", "key": mark},
        "require_sign": False,
    }
    with pytest.raises(ItemNotFound, match="revision 3 of"):
        await configs.diff(ConfigKey("default", "auth", "default"), before=1, after=3)
