"""The configs that a new development server starts with."""

import re

import pytest

from app.commands.config_files import import_folder, read_folder
from app.environment import SettingsError
from app.services import Services
from app.settings import Settings
from deploy.seeds import SEEDS, SIGNED_APP, seed, seed_signed_app
from storage.configs.kinds import KINDS
from storage.configs.kinds.auth import AUTH
from storage.configs.kinds.conversation import CONVERSATION
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.running.config_stores import store_of
from tests.running.servers import SERVER_KEY

_OF_A_DEPLOYMENT = ("production", "engines")
_ENV = {"PARLEY_SERVER_KEY": SERVER_KEY}
_OPENAI = {"PARLEY_OPENAI_BASE_URL": "http://127.0.0.1:9/v1/", "PARLEY_OPENAI_API_KEY": "sk-test"}


async def test_all_seeded_configs_are_valid_and_their_references_exist(services: Services):
    configs = services.configs
    for kind in KINDS.values():
        for name in configs.names(kind, "default"):
            configs.get(kind, "default", name)
            assert configs.warnings(ConfigKey("default", kind.name, name)) == []
    assert set(configs.names(CONVERSATION, "default")) == {"local", "scripted", "scripted-text"}


async def test_the_signed_app_has_the_strategies_of_this_machine_and_requires_signatures(services: Services):
    env, configs = _ENV | {"APP_SIGN_KEY": "k" * 32}, services.configs
    assert {change.outcome for change in await seed_signed_app(configs, env)} == {"added"}
    for kind in KINDS.values():
        for name in configs.names(kind, SIGNED_APP):
            configs.get(kind, SIGNED_APP, name)
            assert configs.warnings(ConfigKey(SIGNED_APP, kind.name, name)) == []
    assert configs.get(AUTH, SIGNED_APP, "default").value.require_sign
    assert set(configs.names(CONVERSATION, SIGNED_APP)) == {"local", "scripted"}
    assert {change.outcome for change in await seed_signed_app(configs, env)} == {"unchanged"}
    assert {change.outcome for change in await seed(configs, _ENV)} == {"unchanged"}


async def test_second_seed_changes_nothing(services: Services):
    assert {change.outcome for change in await seed(services.configs, _ENV)} == {"unchanged"}


async def test_seed_keeps_what_an_operator_changed_or_deleted(services: Services):
    changed = {"chat": {"account": "scripted", "model": "scripted:0"}}
    await services.configs.put("default", "conversation", "scripted", changed, author="operator", origin=COMMAND)
    await services.configs.delete(ConfigKey("default", "conversation", "local"), author="operator", origin=COMMAND)
    changes = {change.key[1:]: change.outcome for change in await seed(services.configs, _ENV)}
    assert changes["conversation", "scripted"] == changes["conversation", "local"] == "kept"
    assert services.configs.get(CONVERSATION, "default", "scripted").value.chat.model == "scripted:0"
    assert not services.configs.exists(CONVERSATION, "default", "local")


async def test_seed_replaces_its_own_earlier_value(services: Services):
    old = {"chat": {"account": "scripted", "model": "scripted:5"}}
    await services.configs.put("default", "conversation", "scripted", old, author="seed", origin=COMMAND)
    changes = {change.key: change.outcome for change in await seed(services.configs, _ENV)}
    assert changes["default", "conversation", "scripted"] == "changed"
    assert services.configs.get(CONVERSATION, "default", "scripted").value.chat.model == "scripted"


async def test_a_deployment_is_not_seeded(services: Services):
    async with services.database.connection() as conn:
        await conn.execute("update config_revisions set author = 'import'")
    with pytest.raises(SettingsError, match=r"^parley: DATABASE_URL: the database has configs of a deployment"):
        await seed(services.configs, _ENV)
    async with services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from config_revisions where author = 'seed'") == 0


async def test_real_model_needs_no_key(services: Services):
    await seed(services.configs, _ENV | {"PARLEY_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"})
    account = services.configs.get(VENDOR_ACCOUNTS, "default", "openai").value
    assert (account.base_url, account.api_key) == ("http://127.0.0.1:11434/v1", None)
    assert services.configs.exists(CONVERSATION, "default", "openai")


async def test_the_key_of_a_real_model_is_not_sent_to_another_server(services: Services):
    await seed(services.configs, _ENV | _OPENAI)
    await seed(services.configs, _ENV | {"PARLEY_OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"})
    account = services.configs.get(VENDOR_ACCOUNTS, "default", "openai").value
    assert (account.base_url, account.api_key) == ("http://127.0.0.1:11434/v1", None)


async def test_real_model_is_a_strategy_once_the_environment_names_one(services: Services):
    await seed(services.configs, _ENV | _OPENAI)
    account = services.configs.get(VENDOR_ACCOUNTS, "default", "openai").value
    assert account.base_url == "http://127.0.0.1:9/v1"
    assert account.api_key.get_secret_value() == "sk-test"
    assert services.configs.get(CONVERSATION, "default", "openai").value.chat.model == "gpt-4o-mini"
    await seed(services.configs, _ENV | _OPENAI | {"PARLEY_OPENAI_MODEL": "another"})
    assert services.configs.get(CONVERSATION, "default", "openai").value.chat.model == "another"


async def test_an_invalid_url_of_the_real_model_is_refused_by_the_name_of_its_variable(services: Services):
    with pytest.raises(SettingsError, match=r"^parley: PARLEY_OPENAI_BASE_URL must be a URL that begins with http"):
        await seed(services.configs, _ENV | _OPENAI | {"PARLEY_OPENAI_BASE_URL": "foo"})


async def test_a_new_deployment_starts_with_signed_requests_and_nothing_of_the_development_app(settings: Settings):
    env = {"APP_SIGN_KEY": "k" * 32, "VENDOR_KEY": "sk-of-the-operator"}
    async with store_of(settings) as store:
        for folder in _OF_A_DEPLOYMENT:
            changes = await import_folder(store, SEEDS / folder, author="operator", env=env, strict=True)
            assert {change.outcome for change in changes} == {"added"}
        assert store.get(AUTH, "default", "default").value.require_sign
        assert set(store.names(CONVERSATION, "default")) == {"openai", "local"}
    values = [file.value for folder in _OF_A_DEPLOYMENT for file in read_folder(SEEDS / folder)]
    assert not re.search(r"sandbox|scripted|localhost|127\.0", repr(values))
