"""Runs the steps of a schedule for one user: requests of clients, jobs, and what happens at the platform."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from storage.assets.ledger import TooFewUnits, Use, spend
from tests.app.payments.killed_requests import kill_request
from tests.app.payments.wallet.schedules.access import Access
from tests.app.payments.wallet.schedules.happenings import Happenings, one_of
from tests.app.payments.wallet.schedules.jobs import MINUTES, Jobs
from tests.app.payments.wallet.schedules.owed import Books, Plan
from tests.app.payments.wallet.wallets import Wallet
from vendors.sandbox.faults import key_of

SLOW = key_of(delay_ms=250)
"""The platform does what it is asked, and answers later."""
LOST = key_of(fault="cut_mid_stream", position="before")
"""The platform does what it is asked, and its answer is lost."""
COINS_USED, UNITS_USED = 60, 7
Step = tuple[Any, ...]
"""The name of a method of `Schedule` and its arguments."""


@dataclass(frozen=True)
class Used:
    """Units of a subscription that the user has used."""

    subscription: str
    payment: str
    """The payment whose period they are of."""
    units: int
    at: datetime


@dataclass(frozen=True)
class Upgrade:
    old: str
    new: str
    link: str


@dataclass
class Schedule:
    """Runs the steps of an example for one user."""

    wallet: Wallet
    products: dict[str, str]
    """The products to which the user subscribes, and their plans."""
    plans: dict[str, Plan]
    orders: list[str] = field(default_factory=list)
    subs: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    """Where subscriptions are approved that were created again."""
    upgrades: list[Upgrade] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    """Those of requests that create orders, each of which may be repeated."""
    bought: int = 0
    """How many orders were created without a key."""
    coins_used: int = 0
    used: list[Used] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.access = Access(self.wallet, self.upgrades_of)
        self.jobs = Jobs(self.wallet, self.books, self.watch)
        self.happenings = Happenings(self.wallet, list(self.products.values()))

    async def books(self) -> Books:
        return Books(await self.wallet.books(), self.plans)

    async def watch(self) -> None:
        await self.access.check(await self.books(), coins_used=self.coins_used)

    def upgrades_of(self, sub: str) -> list[str]:
        return [upgrade.new for upgrade in self.upgrades if upgrade.old == sub]

    async def run(self, step: Step) -> None:
        name, *arguments = step
        await self._does(name)(*arguments)
        await self.watch()

    def _does(self, name: str) -> Callable[..., Coroutine[Any, Any, None]]:
        """Return what a step does: a request of the client, a job, or what happens at the platform."""
        does: Callable[..., Coroutine[Any, Any, None]] | None = getattr(self, name, getattr(self.jobs, name, None))
        return does or partial(self._happen, name)

    async def _happen(self, name: str, *how: Any) -> None:
        await getattr(self.happenings, name)(await self.books(), *how)

    async def find_created(self) -> None:
        """Add what killed requests have created, and the user knows by no response."""
        for known, table, column in (
            (self.orders, "wallet_orders", "order_id"),
            (self.subs, "wallet_subscriptions", "subscription_id"),
        ):
            statement = f"select {column} from {table} where uid = $1 and {column} is not null order by row_id"
            known += [name for (name,) in await self.wallet.rows(statement, self.wallet.uid) if name not in known]

    async def race(self, names: Sequence[str]) -> None:
        """Let requests and jobs concern the same objects at once, which are due."""
        await self.jobs.pass_to(self.jobs.now + MINUTES)
        await asyncio.gather(*(self._does(name)() for name in names))

    async def kill(self, name: str) -> None:
        """Let a request or job end after it has called the platform, and before it has stored the result."""
        await self.jobs.pass_to(self.jobs.now + MINUTES)
        await self.wallet.configure(client_secret=SLOW)
        await kill_request(self.wallet, self._does(name)())
        await self.wallet.configure(client_secret="sandbox")
        await self.find_created()

    async def create_order(self) -> None:
        await self._order_with_key(f"key-{len(self.keys)}")

    async def order_again(self) -> None:
        """Send a request again that has created an order, perhaps while it runs."""
        await asyncio.gather(*(self._order_with_key(f"key-{max(0, len(self.keys) - 1)}") for _ in range(2)))

    async def _order_with_key(self, key: str) -> None:
        self.keys.add(key)
        status, answer = await self.wallet.post(
            "walletpay/create", {"product_id": "coins"}, **{"Idempotency-Key": f"{self.wallet.uid}-{key}"}
        )
        if status == 200 and (order_id := answer["walletpay_order"]["id"]) not in self.orders:
            self.orders.append(order_id)

    async def buy(self, fault: str = "") -> None:
        """Create an order, and approve it."""
        self.bought += 1
        order = await self.wallet.order()
        self.orders.append(order["id"])
        await self.wallet.approve(order["approve_link_href"], fault=fault)

    async def capture(self, which: int = 0) -> None:
        if order := one_of(self.orders[::-1], which):
            await self.wallet.capture(order)

    async def capture_without_answer(self, which: int = 0) -> None:
        await self.wallet.configure(client_secret=LOST)
        await self.capture(which)
        await self.wallet.configure(client_secret="sandbox")

    async def sync_order(self, which: int = 0) -> None:
        if order := one_of(self.orders[::-1], which):
            assert (await self.wallet.get(f"walletpay/sync/{order}"))[0] == 200

    async def create_sub(self, product: str = "month") -> str | None:
        """Subscribe, unless the user has a live subscription to the product."""
        status, answer = await self.wallet.post("walletpay_sub", {"product_id": product})
        if status == 400 and answer["error"]["error_type"] == "invalid_operation":
            return None
        assert status == 200, answer
        sub: dict[str, str] = answer["walletpay_sub"]
        self.subs += [sub["id"]] if sub["id"] not in self.subs else []
        self.links[sub["id"]] = sub["approve_link_href"]
        return sub["id"]

    async def subscribe(self, product: str = "month", fault: str = "") -> None:
        if (sub := await self.create_sub(product)) and self.links[sub]:
            await self.wallet.approve(self.links[sub], fault=fault)

    async def approve_old(self, which: int = 0) -> None:
        """Approve a subscription that was created before, if it still waits for that."""
        books = await self.books()
        waiting = [sub for sub in self.links if sub in books.subscriptions and self._waits(books, sub)]
        if sub := one_of(waiting[::-1], which):
            await self.wallet.approve(self.links[sub])

    def _waits(self, books: Books, sub: str) -> bool:
        return books.subscriptions[sub].status == "APPROVAL_PENDING" and self.links[sub] != ""

    async def sync_sub(self, which: int = 0) -> None:
        if sub := one_of(self.subs[::-1], which):
            assert (await self.wallet.get(f"walletpay_sub/{sub}/sync_upgrade"))[0] == 200

    async def upgrade(self, product: str = "year", fault: str = "") -> None:
        """Upgrade the newest subscription, and approve that."""
        if new := await self.begin_upgrade(product):
            await self.wallet.approve(new.link, fault=fault)

    async def begin_upgrade(self, product: str = "year", which: int = 0) -> Upgrade | None:
        if (sub := one_of(self.subs[::-1], which)) is None:
            return None
        status, answer = await self.wallet.upgrade(sub, product)
        if status != 200 or not (link := answer["walletpay_sub"]["approve_link_href"]):
            return None
        new = Upgrade(sub, answer["walletpay_sub"]["id"], link)
        if new.new not in self.subs:
            self.subs.append(new.new)
            self.upgrades.append(new)
        return new

    async def approve_upgrades(self) -> None:
        """Approve all upgrades that were begun."""
        for upgrade in self.upgrades:
            await self.wallet.approve(upgrade.link)

    async def use_coins(self) -> None:
        """Use coins, unless there are too few."""
        use = Use(f"task:{self.wallet.uid}-coins-{self.coins_used}", "coins", COINS_USED)
        if await self._spend(use):
            self.coins_used += COINS_USED

    async def use_units(self, times: int = 1) -> None:
        """Use units of the newest subscription that was paid, after it was read back."""
        books = await self.books()
        paid = [sub for sub in self.subs if sub in books.subscriptions and books.subscriptions[sub].payments]
        if not paid:
            return
        sub = paid[-1]
        assert (await self.wallet.sync(sub))[0] == 200
        last = (await self.books()).subscriptions[sub].payments[-1]
        for _ in range(times):
            key = f"task:{self.wallet.uid}-{sub}-{len(self.used)}"
            if await self._spend(Use(key, self.plans[last.plan_id].asset, UNITS_USED, sub)):
                self.used.append(Used(sub, last.id, UNITS_USED, self.jobs.now))

    async def _spend(self, use: Use) -> bool:
        services = self.wallet.server.services
        with suppress(TooFewUnits):
            async with services.database.transaction() as conn:
                now = services.clock.now("default")
                return await spend(conn, "default", self.wallet.uid, use=use, now=now, sinks=services.sinks)
        return False
