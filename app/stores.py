"""The two stores and the configs, which the server and the commands share. Quick to import."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.checks.configs import check
from app.environment import SettingsError
from app.settings import Settings
from storage.clock import AppClock, open_clock
from storage.configs.master_key import WrongMasterKey, accept_master_key, check_master_key
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore, open_configs
from storage.postgres.database import Database, open_database
from storage.secrets import Keyring
from storage.valkey.client import Valkey
from storage.valkey.opening import open_valkey


@dataclass(frozen=True, slots=True)
class Stores:
    settings: Settings
    database: Database
    valkey: Valkey
    keyring: Keyring
    configs: ConfigStore
    clock: AppClock


@asynccontextmanager
async def open_stores(
    settings: Settings, *, of_process: bool = False, with_any_key: bool = False
) -> AsyncIterator[Stores]:
    """Yield the stores. Raises `SettingsError` if the master key is wrong.

    `of_process`: for a server or a worker, whose first master key becomes that of the deployment. `with_any_key`
    accepts each master key; configs that need another one are broken then.
    """
    async with AsyncExitStack() as stack:
        keyring = Keyring.from_hex(settings.master_key.get_secret_value())
        database = await stack.enter_async_context(open_database(settings.database_url, pooled=settings.is_pooled))
        if not with_any_key:
            await _check_master_key(database, keyring, replaces=of_process)
        valkey = await stack.enter_async_context(open_valkey(settings.redis_url, prefix=settings.redis_prefix))
        configs = await stack.enter_async_context(open_configs(database, valkey, keyring, check=check))
        clock = await stack.enter_async_context(open_clock(database, valkey, movable=settings.development))
        yield Stores(settings, database, valkey, keyring, configs, clock)


async def _check_master_key(database: Database, keyring: Keyring, *, replaces: bool) -> None:
    """Raise `SettingsError` if the secrets of the deployment are encrypted with another master key."""
    try:
        await check_master_key(database, keyring, replaces=replaces)
    except WrongMasterKey:
        raise SettingsError(
            "parley: PARLEY_MASTER_KEY is not the key that has encrypted the secrets of this database: set that key"
            " (if it is lost: docs/operating/secrets.md)"
        ) from None


async def replace_master_key(settings: Settings) -> list[ConfigKey]:
    """Accept the master key of `settings`, although the one before is lost.

    Returns the configs whose secrets have to be written again.
    """
    keyring = Keyring.from_hex(settings.master_key.get_secret_value())
    async with (
        open_database(settings.database_url, pooled=settings.is_pooled) as database,
        database.connection() as conn,
    ):
        await accept_master_key(conn, keyring)
    async with open_stores(settings) as stores:
        return stores.configs.undecryptable()
