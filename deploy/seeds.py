"""The configs of a development server: folders in `seed`, and a language model from the environment.

`seed/development` is for the sandbox and must not be imported in production. `seed/production` is the start of a
new deployment. `seed/engines` has what both need to call the local engines.

`seed/signed` is an app whose clients must sign their requests. It stands beside the app `default`: the talk page
and `curl` need no signature, and the code of a client can be tried as it will run in production, on one server.
"""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from pydantic import SecretStr

from app.commands.config_files import import_folder
from app.environment import SettingsError
from storage.configs.edits import Change
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from storage.operators.audit import COMMAND
from streams.wire.errors import InvalidParameter

AUTHOR = "seed"
SIGNED_APP = "signed"
SEEDS = Path(__file__).parent / "seed"
_FOLDERS = ("development", "engines")
"""The first one has the app."""


async def seed(configs: ConfigStore, env: Mapping[str, str]) -> list[Change]:
    """Write the seed configs. Configs that an operator has changed are kept.

    `env` has the secrets to which the files refer. Raises `SettingsError` if the database has configs, but
    none of a development server: it is that of a deployment, which must not accept the keys of development.
    """
    authors = {revision.author for revision in await configs.overview()}
    if authors and AUTHOR not in authors:
        raise SettingsError(
            "parley: DATABASE_URL: the database has configs of a deployment, which this would change"
        )
    changes = [
        await import_folder(configs, SEEDS / name, author=AUTHOR, env=env, keep_edited_by_others=True)
        for name in _FOLDERS
    ]
    return [*chain.from_iterable(changes), *await _seed_openai(configs, env)]


async def seed_signed_app(configs: ConfigStore, env: Mapping[str, str]) -> list[Change]:
    """Write the configs of the app that requires signatures, with the strategies of the local engines."""
    return [
        *await import_folder(configs, SEEDS / SIGNED_APP, author=AUTHOR, env=env, keep_edited_by_others=True),
        *await import_folder(
            configs, SEEDS / "engines", author=AUTHOR, env=env, app_id=SIGNED_APP, keep_edited_by_others=True
        ),
    ]


async def _seed_openai(configs: ConfigStore, env: Mapping[str, str]) -> list[Change]:
    """Write a strategy `openai` if `PARLEY_OPENAI_BASE_URL` names a server with that protocol.

    Raises `SettingsError` if it is not a URL.
    """
    base_url, key = env.get("PARLEY_OPENAI_BASE_URL"), env.get("PARLEY_OPENAI_API_KEY")
    if not base_url:
        return []
    account = {
        "platform": "vendor_b_llm",
        "base_url": base_url.rstrip("/"),
        "api_key": SecretStr(key) if key else None,  # A self-hosted server may not need one.
    }
    conversation = {
        "chat": {"account": "openai", "model": env.get("PARLEY_OPENAI_MODEL") or "gpt-4o-mini"},
        "recognition": "local",
        "speech": "local",
    }
    try:
        async with configs.editing(author=AUTHOR, origin=COMMAND) as edit:
            return [
                await edit.converge(ConfigKey("default", kind, "openai"), value, keep_edited_by_others=True)
                for kind, value in (("vendor_accounts", account), ("conversation", conversation))
            ]
    except InvalidParameter as error:
        raise SettingsError(f"parley: {error.what.replace('base_url', 'PARLEY_OPENAI_BASE_URL')}") from None
