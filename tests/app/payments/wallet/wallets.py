"""A user who pays by wallet, at the sandbox's platform: requests, approvals, and what happens at the platform."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from aiohttp import encode_basic_auth

from app.payments.wallet.reconciliation import reconcile_wallet
from app.webhooks import compare_events
from storage.operators.audit import COMMAND
from storage.payments.missed_events import CompareEvents
from storage.payments.wallet.reconciliation import ReconcileWallet
from tests.app.callers import ask
from tests.app.operators import Operator
from tests.running.servers import Server
from vendors.sandbox.server import Running

COINS = "PROD-0XB74586CH345074B"
PRO = "PROD-6XB24663H4094933M"
MONTHLY = "P-5ML4271244454362WXNWU5NQ"
YEARLY = "P-2UF78835G6983425GLSM44MA"
TRIAL = "P-7GL4271244454362WXNWU5TR"
WEBHOOK = "8PT597110X687430L"
ZERO = "0001-01-01T00:00:00Z"

PRODUCTS: dict[str, dict[str, Any]] = {
    "coins": {
        "type": "consumable",
        "asset": "coins",
        "quantity": 100,
        "price": {"amount": 199, "currency": "USD", "countries": {"JP": {"amount": 300, "currency": "JPY"}}},
        "walletpay": {"product_id": COINS},
    },
    "month": {
        "type": "subscription",
        "asset": "pro",
        "period": "P1M",
        "quantity": 30,
        "walletpay": {"plan_id": MONTHLY, "product_id": PRO},
    },
    "year": {
        "type": "subscription",
        "asset": "pro",
        "period": "P1Y",
        "walletpay": {"plan_id": YEARLY, "product_id": PRO},
    },
    "trial": {
        "type": "subscription",
        "asset": "pro",
        "period": "P1M",
        "trial": {"period": "P1W"},
        "walletpay": {"plan_id": TRIAL, "product_id": PRO},
    },
}


@dataclass
class Wallet:
    """A user of the server, and a merchant of the sandbox that no other test uses."""

    server: Server
    sandbox: Running
    uid: str
    session: str
    client_id: str
    device: str
    changed: dict[str, Any] = field(default_factory=dict)
    """Fields of the config that differ from the usual ones."""

    async def get(self, path: str) -> tuple[int, Any]:
        return await self._ask("GET", path)

    async def post(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        return await self._ask("POST", path, json=body, more=headers)

    async def _ask(
        self, method: str, path: str, *, more: dict[str, str] | None = None, **body: Any
    ) -> tuple[int, Any]:
        headers = {"X-Service-Session-Token": self.session, **(more or {})}
        return await ask(self.server, method, f"/bp/asset/{path}".rstrip("/"), headers=headers, **body)

    async def order(self, product: str = "coins", **fields: Any) -> dict[str, Any]:
        return await self._created("walletpay/create", "walletpay_order", product, **fields)

    async def subscribe(self, product: str = "month", **fields: Any) -> dict[str, Any]:
        return await self._created("walletpay_sub", "walletpay_sub", product, **fields)

    async def _created(self, path: str, name: str, product: str, **fields: Any) -> dict[str, Any]:
        status, answer = await self.post(path, {"product_id": product, **fields})
        assert status == 200, answer
        created: dict[str, Any] = answer[name]
        return created

    async def approve(self, link: str, fault: str = "") -> str:
        """Approve what a link shows. Return where the user is sent."""
        form = {"action": "approve", "fault": fault}
        async with self.server.http.post(link, data=form, allow_redirects=False) as response:
            assert response.status == 303, await response.text()
            return response.headers["Location"]

    async def subscribed(self, product: str = "month") -> str:
        """Return the id of a new subscription that is active and applied."""
        sub = await self.subscribe(product)
        await self.approve(sub["approve_link_href"])
        status, answer = await self.sync(sub["id"])
        assert (status, answer["walletpay_sub"]["status"]) == (200, "ACTIVE"), answer
        return str(sub["id"])

    async def sync(self, sub_id: str) -> tuple[int, Any]:
        return await self.get(f"walletpay_sub/{sub_id}/sync")

    async def capture(self, order_id: str, **headers: str) -> tuple[int, Any]:
        return await self.post("walletpay/capture", {"order_id": order_id}, **headers)

    async def upgrade(self, sub_id: str, product: str = "year") -> tuple[int, Any]:
        return await self.post(f"walletpay_sub/{sub_id}/upgrade", {"new_bp_product_id": product})

    async def assets(self) -> dict[str, Any]:
        """The user's assets by name. Of several with one name, the one that lasts longest."""
        _, answer = await ask(self.server, "GET", "/bp/asset", headers={"X-Service-Session-Token": self.session})
        found = sorted(answer["assets"], key=lambda asset: asset["valid_seconds"])
        return {asset["name"]: asset for asset in found}

    async def control(self, action: str, **what: Any) -> dict[str, Any]:
        """Let something happen at the platform."""
        body = {"client_id": self.client_id, **what}
        async with self.server.http.post(f"{self.sandbox.url}/paypal/_control/{action}", json=body) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == 200, answer
            return answer

    async def books(self) -> dict[str, Any]:
        """All that the merchant was paid and has refunded."""
        url = f"{self.sandbox.url}/paypal/_control/books"
        async with self.server.http.get(url, params={"client_id": self.client_id}) as response:
            answer: dict[str, Any] = await response.json()
            return answer

    async def platform(self, method: str, path: str, body: Any = None) -> Any:
        """Call the platform as the merchant could by other means."""
        url, http = f"{self.sandbox.url}/paypal", self.server.http
        login, grant = encode_basic_auth(self.client_id, "sandbox"), {"grant_type": "client_credentials"}
        async with http.post(f"{url}/v1/oauth2/token", headers={"Authorization": login}, data=grant) as response:
            token = (await response.json())["access_token"]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        async with http.request(method, f"{url}{path}", headers=headers, json=body) as response:
            return await response.json() if await response.read() else None

    def calls(self, path: str) -> list[dict[str, Any]]:
        """What the server has sent to the paths of the platform that end with `path`, oldest first."""
        made = [call.asked for call in self.sandbox.bill.since(0) if call.asked]
        return [asked for asked in made if asked.get("path", "").endswith(path) and asked["key"]]

    async def travel(self, to: datetime | None) -> None:
        """Move the clocks of the app and of the platform."""
        await self.control("clock", at=None if to is None else to.isoformat())
        await self.move_clock(to)

    async def renew(self, sub_id: str, *, times: int = 1) -> None:
        """Move both clocks to the next payments of a subscription."""
        moved = await self.control("renew", subscription_id=sub_id, times=times)
        await self.move_clock(moved["now"])

    async def move_clock(self, to: datetime | str | None) -> None:
        """Move the clock of the app, which accounts at the server's own sandbox follow."""
        at = to.isoformat() if isinstance(to, datetime) else to
        assert (await ask(self.server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
        _, self.session = await self.server.login(self.device)  # The session may have ended meanwhile.

    async def configure(self, *, config: str = "Default", **fields: Any) -> None:
        """Change fields of a config, such as the secret, which may name a fault."""
        self.changed |= fields
        value = {
            "base_url": f"{self.sandbox.url}/paypal",
            "client_id": self.client_id,
            "client_secret": "sandbox",
            "webhook_id": WEBHOOK,
            "return_url": "https://app.example/paid",
            "cancel_url": "https://app.example/cancelled",
            "url_hosts": ["app.example"],
            "brand_name": "Example",
            **self.changed,
        }
        await put(self.server, "walletpay", config, value)

    async def reconcile(self) -> None:
        """Read back what is due."""
        await reconcile_wallet(self.server.services, ReconcileWallet(app_id="default", config="Default"))

    async def find_missed_events(self) -> None:
        job = CompareEvents(app_id="default", kind="walletpay", config="Default")
        await compare_events(self.server.services, job)

    async def rows(self, statement: str, *arguments: Any) -> list[Any]:
        async with self.server.services.database.connection() as conn:
            return [tuple(row) for row in await conn.fetch(statement, *arguments)]

    async def entries(self) -> list[tuple[str, str]]:
        """The key and the kind of each entry of the user's ledger, oldest first."""
        statement = "select key, kind from asset_entries where uid = $1 order by entry_id"
        return await self.rows(statement, self.uid)

    async def paid_until(self) -> datetime:
        """The latest end of what was granted, by the ledger."""
        statement = "select max(ends_at) from asset_entries where uid = $1 and kind = 'grant'"
        [(end,)] = await self.rows(statement, self.uid)
        found: datetime = end
        return found

    async def mismatches(self, kind: str) -> list[dict[str, Any]]:
        """What operators are told of a kind, the newest first."""
        found = await Operator(self.server)("GET", "payments/mismatches?app=default&size=100")
        assert found.status == 200, found.body
        return [mismatch for mismatch in found.body["mismatches"] if mismatch["kind"] == kind]

    async def kinds(self) -> list[str]:
        return [kind for _, kind in await self.entries()]


def error(answer: tuple[int, Any]) -> tuple[int, str]:
    status, body = answer
    return status, body["error"]["error_type"]


async def put(server: Server, kind: str, name: str, value: dict[str, Any]) -> None:
    await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)


@asynccontextmanager
async def wallet_at(server: Server, sandbox: Running) -> AsyncIterator[Wallet]:
    """A new user of a server whose wallet payments are those of a new merchant of the sandbox."""
    device = uuid4().hex
    uid, session = await server.login(device)
    wallet = Wallet(server, sandbox, uid, session, f"client-{uuid4().hex}", device)
    for name, product in PRODUCTS.items():
        await put(server, "products", name, product)
    await wallet.configure()
    try:
        yield wallet
    finally:
        if server.services.clock.offset_s("default"):
            await server.services.clock.move("default", offset_s=0)


async def another(wallet: Wallet) -> Wallet:
    """Another user of the same app."""
    device = uuid4().hex
    uid, session = await wallet.server.login(device)
    return Wallet(wallet.server, wallet.sandbox, uid, session, wallet.client_id, device)


async def subscriptions(wallet: Wallet, count: int) -> list[dict[str, Any]]:
    """Subscribe to `count` products like `month`, because a user has one subscription to each."""
    for number in range(count):
        await put(wallet.server, "products", f"month_{number}", PRODUCTS["month"])
    return [await wallet.subscribe(f"month_{number}") for number in range(count)]


async def add_weekly(wallet: Wallet) -> None:
    """Add a product `week` with a plan of its own."""
    await add_plan(wallet, "week", title="Pro, weekly", unit="WEEK", period="P1W", price="3.00")


async def add_plan(
    wallet: Wallet, name: str, *, title: str, unit: str, period: str, price: str, cycles: int = 0, **fields: Any
) -> str:
    """Add a product `name` with a plan of its own, which renews after each `unit`, at a price in USD.

    It ends after `cycles`, unless they are 0. `fields` are further ones of the product. Return the plan.
    """
    cycle = {
        "frequency": {"interval_unit": unit, "interval_count": 1},
        "tenure_type": "REGULAR",
        "sequence": 1,
        "total_cycles": cycles,
        "pricing_scheme": {"fixed_price": {"currency_code": "USD", "value": price}},
    }
    body = {"product_id": PRO, "name": title, "billing_cycles": [cycle], "payment_preferences": {}}
    plan: str = (await wallet.platform("POST", "/v1/billing/plans", body))["id"]
    product = {"type": "subscription", "asset": "pro", "period": period, "walletpay": {"plan_id": plan}, **fields}
    await put(wallet.server, "products", name, product)
    return plan
