"""Secrets in configs are encrypted where they are stored, never shown, and kept when a masked value is written."""

import secrets
from dataclasses import replace

import asyncpg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import SecretStr

from app.settings import Settings
from storage.configs.differences import differences
from storage.configs.kinds.auth import AUTH
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.configs.rows import ConfigKey, Revision
from storage.configs.secrets import MARK, decrypt_secrets, encrypt_secrets, mask_secrets, restore_secrets
from storage.operators.audit import COMMAND
from storage.secrets import Keyring
from streams.wire.errors import ConfigInvalid, InvalidParameter
from tests.calendar.clock import utc_now
from tests.running.config_stores import api_key, store_of

MAIN = ConfigKey("default", "vendor_accounts", "main")
KEYS = ConfigKey("default", "auth", "default")
KEYRING = Keyring.from_hex(secrets.token_hex(32))
SECRET = "sk-very-secret"

plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.builds(SecretStr, st.text()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "key", "a/b", "~", ""]) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


async def everything(settings: Settings) -> str:
    """Return all stored content of the tables."""
    conn = await asyncpg.connect(settings.direct_url)
    try:
        rows = await conn.fetch("select r::text as row from config_revisions r")
    finally:
        await conn.close()
    return "\n".join(row["row"] for row in rows)


def revision(value: object, boxes: dict[str, str]) -> Revision:
    return Revision(MAIN, 1, value, boxes, "ada", "", utc_now(), deleted=False)


async def test_secrets_are_usable_but_never_visible(settings, configs):
    await configs.put(*MAIN, {"platform": "p", "api_key": SECRET}, author="ada", origin=COMMAND)
    assert api_key(configs) == SECRET
    assert SECRET not in await everything(settings)
    assert (await configs.read(MAIN)).value == {"platform": "p", "api_key": MARK}
    assert SECRET not in repr(configs.get(VENDOR_ACCOUNTS, "default", "main"))


async def test_secrets_in_lists_of_models_are_encrypted_too(settings, configs):
    value = {
        "sign_keys": [{"id": "a", "key": SECRET}],
        "server_keys": [{"kid": "s", "alg": "HS256", "secret": SECRET}],
    }
    await configs.put(*KEYS, value, author="ada", origin=COMMAND)
    assert SECRET not in await everything(settings)
    auth = configs.singleton(AUTH, "default")
    assert auth.sign_keys[0].key.get_secret_value() == SECRET
    shown = (await configs.read(KEYS)).value
    assert shown["sign_keys"] == [{"id": "a", "key": MARK}]
    assert shown["server_keys"][0]["secret"] == MARK


async def test_a_masked_secret_is_kept_and_an_absent_one_dropped(configs):
    await configs.put(*MAIN, {"platform": "p", "api_key": SECRET}, author="ada", origin=COMMAND)
    shown = (await configs.read(MAIN)).value
    await configs.put(*MAIN, {**shown, "concurrency": 3}, author="bob", origin=COMMAND)
    assert api_key(configs) == SECRET
    await configs.put(*MAIN, {"platform": "p"}, author="bob", origin=COMMAND)
    assert api_key(configs) is None
    with pytest.raises(InvalidParameter, match="api_key has no stored secret to keep"):
        await configs.put(*MAIN, shown, author="bob", origin=COMMAND)


async def test_kept_secrets_follow_their_items_through_a_list(configs):
    keys = [{"id": "a", "key": "key-a"}, {"id": "b", "key": "key-b"}]
    await configs.put(*KEYS, {"sign_keys": keys}, author="ada", origin=COMMAND)
    swapped = [{"id": "new", "key": "key-new"}, {"id": "b", "key": MARK}, {"id": "a", "key": MARK}]
    await configs.put(*KEYS, {"sign_keys": swapped}, author="ada", origin=COMMAND)
    now = {key.id: key.key.get_secret_value() for key in configs.singleton(AUTH, "default").sign_keys}
    assert now == {"new": "key-new", "b": "key-b", "a": "key-a"}
    with pytest.raises(InvalidParameter, match=r"sign_keys\[0\]\.key has no stored secret to keep"):
        await configs.put(*KEYS, {"sign_keys": [{"id": "c", "key": MARK}]}, author="ada", origin=COMMAND)


async def test_a_ciphertext_moved_to_another_row_is_not_decrypted(settings, configs):
    await configs.put(*MAIN, {"platform": "p", "api_key": SECRET}, author="ada", origin=COMMAND)
    await configs.put(
        "default", "vendor_accounts", "thief", {"platform": "p", "api_key": "mine"}, author="eve", origin=COMMAND
    )
    conn = await asyncpg.connect(settings.direct_url)
    await conn.execute(
        "update config_revisions set secrets = (select secrets from config_revisions where name = 'main')"
        " where name = 'thief'"
    )
    await conn.close()
    async with store_of(settings) as store:
        with pytest.raises(ConfigInvalid, match="vendor_accounts thief: api_key cannot be decrypted"):
            store.get(VENDOR_ACCOUNTS, "default", "thief")
        assert api_key(store) == SECRET


async def test_configs_of_another_master_key_can_be_rewritten(settings, configs):
    await configs.put(*MAIN, {"platform": "p", "api_key": SECRET}, author="ada", origin=COMMAND)
    async with store_of(replace(settings, master_key=SecretStr(secrets.token_hex(32)))) as store:
        with pytest.raises(ConfigInvalid, match="api_key cannot be decrypted"):
            store.get(VENDOR_ACCOUNTS, "default", "main")
        with pytest.raises(InvalidParameter, match="api_key has no stored secret to keep"):
            await store.put(*MAIN, {"platform": "p", "api_key": MARK}, author="ada", origin=COMMAND)
        await store.put(*MAIN, {"platform": "p", "api_key": "sk-new"}, author="ada", origin=COMMAND)
        assert api_key(store) == "sk-new"


async def test_differences_of_secrets_do_not_reveal_them(configs):
    await configs.put(*MAIN, {"platform": "p", "api_key": SECRET}, author="ada", origin=COMMAND)
    await configs.put(*MAIN, {"platform": "p", "api_key": MARK}, author="ada", origin=COMMAND)
    await configs.put(*MAIN, {"platform": "p", "api_key": "sk-other"}, author="ada", origin=COMMAND)
    assert await configs.diff(MAIN, before=1, after=2) == []
    (changed,) = await configs.diff(MAIN, before=2, after=3)
    assert (changed.path, changed.before, changed.after) == ("api_key", MARK, MARK)


async def test_a_masked_secret_in_free_options_is_plain_data(configs):
    options = {"secret": True, "a/b": {"secret": True}, "~": [{"secret": True}]}
    await configs.put("default", "speech", "s", {"account": "a", "options": options}, author="ada", origin=COMMAND)
    assert (await configs.read(ConfigKey("default", "speech", "s"))).value["options"] == options


@given(value=values)
def test_every_secret_is_decrypted_to_its_original_value(value):
    stored, encrypted = encrypt_secrets(KEYRING, MAIN, value)
    assert stored == mask_secrets(value)
    assert decrypt_secrets(KEYRING, revision(stored, encrypted)) == (value, [])


@given(value=values)
def test_writing_back_the_masked_value_changes_nothing(value):
    assume(not _ambiguous(value))
    assert list(differences(restore_secrets(mask_secrets(value), value), value)) == []


def _ambiguous(value: object) -> bool:
    """Return whether a list has items with an id or a name, which need not be unique."""
    if isinstance(value, dict):
        return any(map(_ambiguous, value.values()))
    if isinstance(value, list):
        return any(map(_ambiguous, value)) or any(
            isinstance(item, dict) and not {"id", "kid", "name"}.isdisjoint(item) for item in value
        )
    return False


@given(before=plain_json, after=plain_json)
def test_values_have_no_differences_only_if_they_are_equal(before, after):
    assert list(differences(before, before)) == []
    assert bool(list(differences(before, after))) == (repr(_sorted(before)) != repr(_sorted(after)))


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
