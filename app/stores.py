"""The two stores and the configs: what the server and the commands share. Quick to import."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.settings import Settings
from storage.configs import ConfigStore, open_configs
from storage.kinds.vendor_accounts import VendorAccount
from storage.postgres import Database, open_database
from storage.redis import Valkey, open_valkey
from storage.secrets import Keyring
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model


@dataclass(frozen=True, slots=True)
class Stores:
    settings: Settings
    database: Database
    valkey: Valkey
    keyring: Keyring
    configs: ConfigStore


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    async with AsyncExitStack() as stack:
        keyring = Keyring.from_hex(settings.master_key.get_secret_value())
        database = await stack.enter_async_context(open_database(settings.database_url))
        valkey = await stack.enter_async_context(open_valkey(settings.redis_url, prefix=settings.redis_prefix))
        configs = await stack.enter_async_context(open_configs(database, valkey, keyring, check=_check_config))
        yield Stores(settings, database, valkey, keyring, configs)


def _check_config(app_id: str, kind: str, value: Model) -> None:
    """Refuse a vendor account whose platform has no client."""
    if not isinstance(value, VendorAccount):
        return
    from vendors.catalog import CATALOG  # noqa: PLC0415 - slow to import, and few commands write a vendor account

    if value.platform not in CATALOG:
        raise InvalidParameter(f"platform must be one of {', '.join(sorted(CATALOG))}")
