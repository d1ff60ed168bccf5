"""A server whose payment platforms are in the sandbox, with stores that a test can stop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.app.callers import token
from tests.app.payments.cards.shop import CONFIG, Buyer, Shop
from tests.app.payments.wallet.wallets import PRODUCTS, WEBHOOK, Wallet
from tests.app.stoppable_stores import open_stoppable
from tests.app.valkey_proxy import ValkeyProxy
from tests.running.config_stores import store_unchecked
from tests.running.servers import SERVER_KEY, Databases, Server
from vendors.sandbox.server import Running, listening

PLATFORMS = ("cardpay", "walletpay", "payouts")
"""The kinds of configs of payment platforms."""
_MUCH = {"count": 10_000, "per_s": 1}
_BREAKER = {"breaker": {"min_calls": 1_000_000}}
TOKEN = "X-Service-Auth-Token"
Answer = tuple[int, Any]
Place = tuple[str, str]
"""A method, and a path of the route table."""


@dataclass(frozen=True)
class Request:
    """A request to an endpoint."""

    method: str
    path: str
    headers: dict[str, str]
    uid: str
    session: str
    body: Any = None
    """A JSON value, or bytes."""
    other: Any = None
    """Fields of the body, or a `path`, that make it another valid request."""
    scope: str = ""
    """The scope of the server token that the request has unless `headers` has one. Empty: it has none."""

    def having(self, **headers: str) -> "Request":
        return replace(
            self, headers={**self.headers, **{name.replace("_", "-"): headers[name] for name in headers}}
        )

    @property
    def another(self) -> "Request":
        """The same, with other fields."""
        if self.body is None:
            return replace(self, path=self.other["path"])
        return replace(self, body={**self.body, **self.other})


@dataclass(frozen=True)
class Till:
    server: Server
    sandbox: Running
    database: ValkeyProxy
    valkey: ValkeyProxy
    client_id: str
    """The merchant at the wallet platform."""

    @property
    def shop(self) -> Shop:
        return Shop(self.server, self.sandbox)

    async def wallet(self) -> Wallet:
        """A new user."""
        device = uuid4().hex
        uid, session = await self.server.login(device)
        return Wallet(self.server, self.sandbox, uid, session, self.client_id, device)

    def wallet_of(self, request: Request) -> Wallet:
        """The user of a request."""
        return Wallet(self.server, self.sandbox, request.uid, request.session, self.client_id, device="")

    @staticmethod
    def buyer(wallet: Wallet) -> Buyer:
        return Buyer(wallet.uid, wallet.session, wallet.device)

    async def ask(self, request: Request) -> Answer:
        body = (
            {"data" if isinstance(request.body, bytes) else "json": request.body}
            if request.body is not None
            else {}
        )
        url = self.server.url + request.path
        headers = request.headers
        if request.scope and TOKEN not in headers:  # A token is valid for one call.
            headers = {**headers, **token(scope=request.scope, jti=uuid4().hex)}
        async with self.server.http.request(request.method, url, headers=headers, **body) as response:
            return response.status, await response.json() if response.content_type == "application/json" else None

    async def put(self, kind: str, name: str, value: Any) -> None:
        await self.server.services.configs.put("default", kind, name, value, author="tests", origin=COMMAND)

    def usual(self, secret: str = "sandbox", *, base_url: str = "{sandbox}") -> dict[tuple[str, str], Any]:
        """Return the values of the configs, by kind and name.

        The server uses `secret` at all platforms. It may name a fault.
        """
        paypal = {
            "base_url": f"{base_url}/paypal",
            "client_id": self.client_id,
            "client_secret": secret,
            "webhook_id": WEBHOOK,
            **_BREAKER,
        }
        pages = {name: f"https://app.example/{name}" for name in ("return_url", "cancel_url")}
        key = {"kid": "development", "alg": "HS256", "secret": SERVER_KEY}
        card = {**CONFIG, **_BREAKER, "secret_key": secret, "base_url": f"{base_url}/stripe"}
        return {
            ("cardpay", "Default"): card,
            ("walletpay", "Default"): {**paypal, **pages},
            ("payouts", "Default"): paypal,
            ("share_groups", "pro"): {"quota": 2, "platforms": ["walletpay"]},
            ("auth", "default"): {"server_keys": [key], "require_sign": False},
            ("limits", "default"): {
                "rates": dict.fromkeys(("cards", "wallets", "payment_reads", "signup", "server"), _MUCH)
            },
        }

    async def restore(self, *kinds: str) -> None:
        """Write the configs of these kinds as they usually are."""
        for (kind, name), value in self.usual().items():
            if kind in kinds:
                await self.put(kind, name, value)

    @asynccontextmanager
    async def with_platforms(self, secret: str, **where: str) -> AsyncIterator[None]:
        """Let the server use another secret during the block, or other addresses."""
        for (kind, name), value in self.usual(secret, **where).items():
            if kind in PLATFORMS:
                await self.put(kind, name, value)
        try:
            yield
        finally:
            await self.restore(*PLATFORMS)

    @asynccontextmanager
    async def with_config(self, kind: str, **fields: Any) -> AsyncIterator[None]:
        """Replace fields of a config during the block."""
        [(name, value)] = [
            (name, value) for (stored_kind, name), value in self.usual().items() if stored_kind == kind
        ]
        await store_unchecked(self.server.services, kind, name, {**value, **fields})
        try:
            yield
        finally:
            await self.restore(kind)

    @asynccontextmanager
    async def without_config(self, kind: str) -> AsyncIterator[None]:
        [name] = [name for stored_kind, name in self.usual() if stored_kind == kind]
        key = ConfigKey("default", kind, name)
        await self.server.services.configs.delete(key, author="tests", origin=COMMAND)
        try:
            yield
        finally:
            await self.restore(kind)

    async def execute(self, statement: str, *values: Any) -> None:
        async with self.server.services.database.connection() as conn:
            await conn.execute(statement, *values)

    async def fetch(self, statement: str, *values: Any) -> Any:
        async with self.server.services.database.connection() as conn:
            return await conn.fetchval(statement, *values)


@asynccontextmanager
async def open_till(databases: Databases, data_dir: Path) -> AsyncIterator[Till]:
    async with (
        listening() as sandbox,
        open_stoppable(databases, data_dir, sandbox_url=sandbox.url) as stores,
    ):
        till = Till(stores.server, sandbox, stores.database, stores.valkey, f"client-{uuid4().hex}")
        for name, product in PRODUCTS.items():
            await till.put("products", name, product)
        await till.restore(*(kind for kind, _ in till.usual()))
        yield till
