"""Stores of configs for tests: one for each process that is played."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from app.settings import Settings
from app.stores import Stores
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore, open_configs
from storage.operators.audit import COMMAND
from storage.postgres.database import open_database
from storage.secrets import Keyring
from storage.valkey.opening import open_valkey

NOWHERE = "redis://127.0.0.1:1"


@asynccontextmanager
async def store_of(settings: Settings, *, redis_url: str = "", **options: Any) -> AsyncIterator[ConfigStore]:
    """A store as each process has one."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            open_database(settings.database_url, pooled=settings.is_pooled, max_size=3)
        )
        valkey = await stack.enter_async_context(
            open_valkey(redis_url or settings.redis_url, prefix=settings.redis_prefix)
        )
        keyring = Keyring.from_hex(settings.master_key.get_secret_value())
        yield await stack.enter_async_context(open_configs(database, valkey, keyring, **options))


async def store_unchecked(stores: Stores, kind: str, name: str, value: Any) -> None:
    """Store a config of the app `default` as a version of this server would that checked less."""
    async with open_configs(stores.database, stores.valkey, stores.keyring) as unchecked:
        await unchecked.put("default", kind, name, value, author="tests", origin=COMMAND)
    await stores.configs.refresh()


def api_key(configs: ConfigStore, name: str = "main") -> str | None:
    key = configs.get(VENDOR_ACCOUNTS, "default", name).value.api_key
    return None if key is None else key.get_secret_value()


LOCAL = ConfigKey("default", "speech", "local")
