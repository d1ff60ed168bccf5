"""The configs of a development server: the folder `seed`, and a real language model where one is named."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.commands.config_files import import_folder
from storage.config_edits import Change
from storage.config_rows import ConfigKey
from storage.configs import ConfigStore

AUTHOR = "seed"
_FOLDER = Path(__file__).parent / "seed"


async def seed(configs: ConfigStore, env: Mapping[str, str]) -> list[Change]:
    """Bring the seeded configs up to date. What an operator changed stays as it is.

    `env` has the secrets that the files name.
    """
    return [
        *await import_folder(configs, _FOLDER, author=AUTHOR, env=env, keep_edited_by_others=True),
        *await _seed_openai(configs, env),
    ]


async def _seed_openai(configs: ConfigStore, env: Mapping[str, str]) -> list[Change]:
    """A strategy `openai`, where the environment tells of a server that speaks that protocol."""
    base_url, key = env.get("PARLEY_OPENAI_BASE_URL"), env.get("PARLEY_OPENAI_API_KEY")
    if not base_url:
        return []
    account: dict[str, Any] = {"platform": "vendor_b_llm", "base_url": base_url.rstrip("/")}
    if key:  # a server of one's own may need none
        account["api_key"] = SecretStr(key)
    conversation = {
        "chat": {"account": "openai", "model": env.get("PARLEY_OPENAI_MODEL") or "gpt-4o-mini"},
        "recognition": "local",
        "speech": "local",
    }
    async with configs.editing(author=AUTHOR) as edit:
        return [
            await edit.converge(ConfigKey("default", kind, "openai"), value, keep_edited_by_others=True)
            for kind, value in (("vendor_accounts", account), ("conversation", conversation))
        ]
