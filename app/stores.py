"""The two stores and the configs, which the server and the commands share. Quick to import."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.checks.configs import check
from app.settings import Settings
from storage.clock import AppClock, open_clock
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
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    async with AsyncExitStack() as stack:
        keyring = Keyring.from_hex(settings.master_key.get_secret_value())
        database = await stack.enter_async_context(open_database(settings.database_url, pooled=settings.is_pooled))
        valkey = await stack.enter_async_context(open_valkey(settings.redis_url, prefix=settings.redis_prefix))
        configs = await stack.enter_async_context(open_configs(database, valkey, keyring, check=check))
        clock = await stack.enter_async_context(open_clock(database, valkey, movable=settings.development))
        yield Stores(settings, database, valkey, keyring, configs, clock)
