"""The one page of wiring: everything long-lived, by name, opened here and closed in reverse."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from actors.context import Resources
from actors.strategies import Strategies
from actors.supervisor import Supervisor, open_supervisor
from app.settings import Settings
from storage.admission import Places, open_places
from storage.configs import ConfigStore, open_configs
from storage.kinds.vendor_accounts import VendorAccount
from storage.limits import RateLimiter
from storage.objects import ObjectStore, open_objects
from storage.parked import open_parking
from storage.postgres import Database, open_database
from storage.redis import Valkey, open_valkey
from storage.secrets import Keyring
from storage.sessions import SessionCopies
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from vendors.catalog import CATALOG
from vendors.local_engines import open_local_engines
from vendors.transport import open_vendor_http


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    database: Database
    valkey: Valkey
    keyring: Keyring
    configs: ConfigStore
    objects: ObjectStore
    limiter: RateLimiter
    strategies: Strategies
    supervisor: Supervisor
    sessions: SessionCopies
    places: Places

    @property
    def resources(self) -> Resources:
        """What plays may use of it."""
        return Resources(self.database, self.objects, self.strategies, self.valkey)

    def parts(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What readiness asks, by name."""
        return {
            "postgres": self.database.ping,
            "valkey": self.valkey.ping,
            "configs": self.configs.ping,
            "objects": self.objects.ping,
        }


SERVICES: web.AppKey[Services] = web.AppKey("services", Services)


def _check_config(app_id: str, kind: str, value: Model) -> None:
    """What of a config only the vendors know."""
    if isinstance(value, VendorAccount) and value.platform not in CATALOG:
        raise InvalidParameter(f"platform must be one of {', '.join(sorted(CATALOG))}")


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    async with AsyncExitStack() as stack:
        keyring = Keyring.from_hex(settings.master_key.get_secret_value())
        database = await stack.enter_async_context(open_database(settings.database_url))
        valkey = await stack.enter_async_context(open_valkey(settings.redis_url, prefix=settings.redis_prefix))
        configs = await stack.enter_async_context(open_configs(database, valkey, keyring, check=_check_config))
        objects = await stack.enter_async_context(
            open_objects(
                folder=settings.data_dir / "objects",
                bucket=settings.s3_bucket,
                endpoint_url=settings.s3_endpoint_url,
                public_url=settings.public_url,
                keyring=keyring,
            )
        )
        http = await stack.enter_async_context(open_vendor_http())
        engines = await stack.enter_async_context(open_local_engines(http, settings.local_url))
        await stack.enter_async_context(open_parking(database, valkey))
        places = await stack.enter_async_context(open_places(valkey))
        supervisor = await stack.enter_async_context(open_supervisor())
        yield Services(
            settings=settings,
            database=database,
            valkey=valkey,
            keyring=keyring,
            configs=configs,
            objects=objects,
            limiter=RateLimiter(valkey),
            strategies=Strategies(configs, http, engines, local_url=settings.local_url),
            supervisor=supervisor,
            sessions=SessionCopies(valkey),
            places=places,
        )
