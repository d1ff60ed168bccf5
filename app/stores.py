"""The two stores and the configs: what the server and the commands share. Quick to import."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.settings import Settings
from storage.clock import AppClock, open_clock
from storage.config_rules import Fault, Named, Unknown
from storage.configs import ConfigStore, open_configs
from storage.kinds.apps import App
from storage.postgres import Database, open_database
from storage.redis import Valkey, open_valkey
from storage.secrets import Keyring
from streams.wire.model import Model
from streams.wire.money import exponent_of


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
        database = await stack.enter_async_context(open_database(settings.database_url))
        valkey = await stack.enter_async_context(open_valkey(settings.redis_url, prefix=settings.redis_prefix))
        configs = await stack.enter_async_context(open_configs(database, valkey, keyring, check=_check_config))
        clock = await stack.enter_async_context(open_clock(database, valkey, movable=settings.development))
        yield Stores(settings, database, valkey, keyring, configs, clock)


def _check_config(value: Model, named: Named, unknown: Unknown) -> tuple[Model, list[Fault]]:
    """Check the currency of an app, and vendor accounts and strategies against the vendor catalog."""
    if isinstance(value, App):
        return value, _currency_faults(value)
    from app.vendor_checks import check  # noqa: PLC0415 - slow to import, and few commands write configs

    return check(value, named, unknown)


def _currency_faults(app: App) -> list[Fault]:
    try:
        exponent_of(app.currency)
    except ValueError as error:
        return [Fault("currency", str(error))]
    return []
