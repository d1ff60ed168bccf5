"""Steps of clients, the platform and the jobs, which schedules of wallet payments are made of."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from storage.assets.ledger import TooFewUnits, Use, spend
from tests.app.callers import work_off
from tests.app.payments.killed_requests import kill_request
from tests.app.payments.wallet.wallets import MONTHLY, YEARLY, Wallet
from vendors.sandbox.faults import key_of

SLOW = key_of(delay_ms=250)
"""The platform does what it is asked, and answers later."""
LOST = key_of(fault="cut_mid_stream", position="before")
"""The platform does what it is asked, and its answer is lost."""
DELIVERIES = st.sampled_from(["", "lost", "duplicate", "delayed", "reordered"])
REQUESTS = ["order_again", "capture", "sync_order", "sync_sub"]
"""Those of a client that may run at any time."""
WHICH = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("buy"), st.sampled_from(["", "lost", "duplicate", "decline", "pending"])),
    st.tuples(st.just("subscribe"), DELIVERIES),
    st.tuples(st.sampled_from(["capture", "sync_order", "sync_sub", "renew", "refund", "cancel"]), WHICH),
    st.tuples(st.sampled_from(["suspend", "activate", "decline", "use_coins"]), WHICH),
    st.tuples(st.sampled_from(["use_units", "revise", "refund_order"]), WHICH),
    st.tuples(st.sampled_from(["capture_without_answer", "settle_pending", "reupgrade"]), WHICH),
    st.tuples(st.just("upgrade"), DELIVERIES),
    st.tuples(st.sampled_from(["work", "reconcile", "find_missed", "fail_for_a_while"]), WHICH),
    st.tuples(
        st.just("race"),
        st.lists(st.sampled_from([*REQUESTS, "work", "reconcile_now", "find_missed"]), min_size=2, max_size=3),
    ),
    st.tuples(st.just("kill"), st.sampled_from([*REQUESTS, "create_order", "create_sub", "reconcile_now"])),
)
UNITS, MOST_UNITS = 7, 28
"""How many units of a subscription are used at once, and altogether."""
PAID = {"COMPLETED", "PARTIALLY_REFUNDED", "REFUNDED"}


class Schedule:
    """Runs the steps of an example for one user."""

    def __init__(self, wallet: Wallet) -> None:
        self.wallet = wallet
        self.orders: list[str] = []
        self.subs: list[str] = []
        self.upgrades: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        """Those of requests that create orders, each of which may be repeated."""
        self.bought = 0
        """How many orders were created without a key."""
        self.used = 0
        """Coins."""
        self.units: Counter[str] = Counter()
        """The units that were used of subscriptions."""

    async def find_created(self) -> None:
        """Add what killed requests have created, and the user knows by no response."""
        for known, table, column in (
            (self.orders, "wallet_orders", "order_id"),
            (self.subs, "wallet_subscriptions", "subscription_id"),
        ):
            statement = f"select {column} from {table} where uid = $1 and {column} is not null order by row_id"
            known += [name for (name,) in await self.wallet.rows(statement, self.wallet.uid) if name not in known]

    async def run(self, step: tuple[str, Any]) -> None:
        what, given_ = step
        await getattr(self, what)(given_)

    async def race(self, names: Sequence[str]) -> None:
        """Let requests and jobs concern the same objects at once, which are due."""
        await self.pass_minutes()
        await asyncio.gather(*(getattr(self, name)(0) for name in names))

    async def kill(self, name: str) -> None:
        """Let a request or job end after it has called the platform, and before it has stored the result."""
        await self.pass_minutes()
        await self.wallet.configure(client_secret=SLOW)
        await kill_request(self.wallet, getattr(self, name)(0))
        await self.wallet.configure(client_secret="sandbox")
        await self.find_created()

    async def create_order(self, _: int) -> None:
        await self.order_with_key(f"key-{len(self.keys)}")

    async def order_again(self, _: int) -> None:
        """Send a request again that has created an order, perhaps while it runs."""
        await asyncio.gather(*(self.order_with_key(f"key-{max(0, len(self.keys) - 1)}") for _ in range(2)))

    async def order_with_key(self, key: str) -> None:
        self.keys.add(key)
        status, answer = await self.wallet.post(
            "walletpay/create", {"product_id": "coins"}, **{"Idempotency-Key": f"{self.wallet.uid}-{key}"}
        )
        if status == 200 and (order_id := answer["walletpay_order"]["id"]) not in self.orders:
            self.orders.append(order_id)

    async def create_sub(self, _: int) -> None:
        await self._subscribed()

    async def buy(self, fault: str) -> None:
        self.bought += 1
        order = await self.wallet.order()
        self.orders.append(order["id"])
        await self.wallet.approve(order["approve_link_href"], fault=fault)

    async def subscribe(self, fault: str) -> None:
        if sub := await self._subscribed():
            self.subs += [sub["id"]] if sub["id"] not in self.subs else []
            await self.wallet.approve(sub["approve_link_href"], fault=fault)

    async def _subscribed(self) -> dict[str, Any] | None:
        """Subscribe, unless the user has a live subscription to the product."""
        status, answer = await self.wallet.post("walletpay_sub", {"product_id": "month"})
        if status == 400 and answer["error"]["error_type"] == "invalid_operation":
            return None
        assert status == 200, answer
        sub: dict[str, Any] = answer["walletpay_sub"]
        return sub

    async def capture(self, which: int) -> None:
        if order := one_of(self.orders, which):
            await self.wallet.capture(order)

    async def capture_without_answer(self, which: int) -> None:
        await self.wallet.configure(client_secret=LOST)
        await self.capture(which)
        await self.wallet.configure(client_secret="sandbox")

    async def sync_order(self, which: int) -> None:
        if order := one_of(self.orders, which):
            assert (await self.wallet.get(f"walletpay/sync/{order}"))[0] == 200

    async def sync_sub(self, which: int) -> None:
        if sub := one_of(self.subs, which):
            assert (await self.wallet.get(f"walletpay_sub/{sub}/sync_upgrade"))[0] == 200

    async def renew(self, which: int) -> None:
        sub = one_of(self.subs, which)
        if sub and (await self.sub(sub))["status"] == "ACTIVE":
            await self.wallet.renew(sub)

    async def refund(self, which: int) -> None:
        sub = one_of(self.subs, which)
        if sub and (payments := await self.payments(sub)) and payments[-1]["status"] == "COMPLETED":
            await self.wallet.control("refund", payment_id=payments[-1]["id"])

    async def refund_order(self, which: int) -> None:
        captures = await self.captures(order) if (order := one_of(self.orders, which)) else []
        for capture in captures:
            if capture["status"] == "COMPLETED":
                await self.wallet.control("refund", payment_id=capture["id"])

    async def cancel(self, which: int) -> None:
        await self._change(which, "cancel", {"ACTIVE", "SUSPENDED"})

    async def suspend(self, which: int) -> None:
        await self._change(which, "suspend", {"ACTIVE"})

    async def activate(self, which: int) -> None:
        await self._change(which, "activate", {"SUSPENDED"})

    async def decline(self, which: int) -> None:
        """Let the bank decline the next payment of a subscription."""
        if sub := one_of(self.subs, which):
            await self.wallet.control("decline", subscription_id=sub)

    async def _change(self, which: int, action: str, allowed: set[str]) -> None:
        sub = one_of(self.subs, which)
        if sub and (await self.sub(sub))["status"] in allowed:
            path = f"/v1/billing/subscriptions/{sub}/{action}"
            await self.wallet.platform("POST", path, {"reason": "enough"})

    async def use_coins(self, which: int) -> None:
        """Use coins, unless there are too few."""
        services, uid = self.wallet.server.services, self.wallet.uid
        use = Use(f"task:{uid}-{self.used}", "coins", 60 * (which + 1))
        now = services.clock.now("default")
        with suppress(TooFewUnits):
            async with services.database.transaction() as conn:
                await spend(conn, "default", uid, use=use, now=now, sinks=services.sinks)
            self.used += use.units

    async def use_units(self, which: int) -> None:
        """Use some units of a subscription, if there are enough. It never uses all of them."""
        services, uid = self.wallet.server.services, self.wallet.uid
        sub = one_of(self.subs, which)
        if sub is None or self.units[sub] >= MOST_UNITS:
            return
        use = Use(f"task:{uid}-{sub}-{self.units[sub]}", "pro", UNITS, sub)
        now = services.clock.now("default")
        with suppress(TooFewUnits):
            async with services.database.transaction() as conn:
                await spend(conn, "default", uid, use=use, now=now, sinks=services.sinks)
            self.units[sub] += UNITS

    async def revise(self, which: int) -> None:
        """Change the plan of a subscription, to which the payer consents."""
        sub = one_of(self.subs, which)
        if sub is None or (found := await self.sub(sub))["status"] != "ACTIVE":
            return
        plan = MONTHLY if found["plan_id"] == YEARLY else YEARLY
        revised = await self.wallet.platform("POST", f"/v1/billing/subscriptions/{sub}/revise", {"plan_id": plan})
        await self.wallet.approve(next(link["href"] for link in revised["links"] if link["rel"] == "approve"))

    async def settle_pending(self, which: int) -> None:
        if (order := one_of(self.orders, which)) is None:
            return
        for capture in await self.captures(order):
            if capture["status"] == "PENDING":
                await self.wallet.control("settle", capture_id=capture["id"], state="completed")

    async def upgrade(self, fault: str) -> None:
        if self.subs and (new := await self._upgraded(self.subs[-1])):
            await self.wallet.approve(new["approve_link_href"], fault=fault)

    async def reupgrade(self, which: int) -> None:
        """Begin an upgrade, and approve one that was begun before."""
        if sub := one_of(self.subs, which):
            await self._upgraded(sub)
        for upgrade in self.upgrades[: which + 1]:
            await self.wallet.approve(upgrade["approve_link_href"])

    async def _upgraded(self, sub: str) -> dict[str, Any] | None:
        product = "month" if (await self.sub(sub))["plan_id"].startswith("P-2") else "year"
        status, answer = await self.wallet.upgrade(sub, product)
        if status != 200 or not answer["walletpay_sub"]["approve_link_href"]:
            return None
        new: dict[str, Any] = answer["walletpay_sub"]
        if new["id"] not in self.subs:
            self.subs.append(new["id"])
            self.upgrades.append(new)
        return new

    async def fail_for_a_while(self, which: int) -> None:
        fault = key_of(fault="unavailable", retry_after_s=0.01, rate=0.5, seed=which)
        await self.wallet.configure(client_secret=fault)
        await self.reconcile(which)
        await self.wallet.configure(client_secret="sandbox")

    async def work(self, _: int) -> None:
        """Run the jobs that wait."""
        await work_off(self.wallet.server.services)

    async def pass_minutes(self) -> None:
        await self.wallet.travel(self.wallet.server.services.clock.now("default") + timedelta(minutes=3))

    async def reconcile(self, _: int) -> None:
        await self.pass_minutes()
        await self.wallet.reconcile()

    async def reconcile_now(self, _: int) -> None:
        await self.wallet.reconcile()

    async def find_missed(self, _: int) -> None:
        await self.wallet.find_missed_events()

    async def finish(self) -> None:
        """Let the jobs at fixed times do their part, with a platform that works."""
        for _ in range(2):
            await self.work(0)
            await self.wallet.rows("update procrastinate_jobs set scheduled_at = null where status = 'todo'")
            now = self.wallet.server.services.clock.now("default")
            await self.wallet.travel(now + timedelta(days=1, hours=1))
            await self.wallet.reconcile()
            await self.wallet.find_missed_events()
        await self.work(0)
        await self.find_created()

    async def sub(self, sub_id: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.wallet.platform(
            "GET", f"/v1/billing/subscriptions/{sub_id}?fields=last_failed_payment"
        )
        return found

    async def payments(self, sub_id: str) -> list[dict[str, Any]]:
        query = "start_time=2020-01-01T00:00:00Z&end_time=2099-01-01T00:00:00Z"
        path = f"/v1/billing/subscriptions/{sub_id}/transactions?{query}"
        found = (await self.wallet.platform("GET", path))["transactions"]
        return sorted(
            (payment for payment in found if payment["status"] in PAID), key=lambda payment: payment["time"]
        )

    async def captures(self, order_id: str) -> list[dict[str, Any]]:
        order = await self.wallet.platform("GET", f"/v2/checkout/orders/{order_id}")
        unit: dict[str, Any] = order.get("purchase_units", [{}])[0]  # It may have expired.
        found: list[dict[str, Any]] = unit.get("payments", {}).get("captures", [])
        return found


def one_of(ids: Sequence[str], which: int) -> str | None:
    return ids[which % len(ids)] if ids else None
