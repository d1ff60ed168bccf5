"""Steps of clients, of the platform and of time, which schedules of card payments are made of."""

import asyncio
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from streams.tasks import background, run_all
from streams.wire.codec import rfc3339
from tests.app.callers import ask
from tests.app.payments.cards.schedules.owed import Owed
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import setup, subscribe
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of

DRAFT_S = 3900
"""An invoice is charged about an hour after its period has begun."""


class Schedule:
    """Plays steps for one user. The platform knows what was paid in the end."""

    def __init__(self, shop: Shop, buyer: Buyer) -> None:
        self.shop = shop
        self.buyer = buyer
        self.customer = ""
        self.calls = 0
        self.orders: list[tuple[str, dict[str, Any]]] = []
        """The idempotency key and the body of each request for a payment."""
        self.held: set[str] = set()
        """The subscriptions that were paid and valid after the last step."""

    async def begin(self) -> None:
        self.customer = (await self.shop.created(self.buyer))["customer_id"]
        self.owed = Owed(self.shop, self.customer)
        await self.shop.link(self.customer)

    async def watch(self) -> None:
        """Wait until the events of the platform are read from now on. The worker runs."""
        async with self.shop.server.services.database.connection() as conn:
            await conn.execute("delete from event_cursors")
            await self.pass_time(minutes=2)
            await until(lambda: conn.fetchval("select count(*) from event_cursors where kind = 'cardpay'"))

    async def play(self, step: str, choice: Any) -> None:
        await getattr(self, f"_{step}")(choice)
        await self.check_access()

    async def check_access(self) -> None:
        """Nobody loses what the platform says is active and paid, and nothing lasts longer than it was paid for.

        Jobs run meanwhile, so a subscription counts if it is paid before and after its asset is read.
        """
        before = await self.owed.renewing()
        assets = await self.assets()
        after = await self.owed.renewing()
        valid = await self.owed.valid(assets)
        lost = (self.held & before & after) - valid
        assert not lost, f"access to {lost} is lost, although the platform says active and paid"
        self.held = before & after & valid
        await self.owed.check_within_paid(assets)

    async def assets(self) -> list[dict[str, Any]]:
        status, answer = await self.shop.client_call(self.buyer, "GET", "/bp/asset")
        assert status == 200, answer
        found: list[dict[str, Any]] = answer["assets"]
        return found

    async def _buy(self, how: str) -> None:
        order = self._ordered(charge=how == "charge")
        for _ in range(2):  # A client repeats what has failed.
            status, answer = await self._create(order)
            if status == 200:
                if how == "confirm":
                    await self.shop.pay(answer["id"])
                return
            assert answer["error_type"] == "backend unavailable"

    def _ordered(self, *, charge: bool) -> tuple[str, dict[str, Any]]:
        self.calls += 1
        body = {"product_id": "coins_100", "with_customer_payment_method": charge}
        self.orders.append((f"order-{self.calls}", body))
        return self.orders[-1]

    async def _create(self, order: tuple[str, dict[str, Any]]) -> tuple[int, Any]:
        key, body = order
        return await self.shop.create(self.buyer, key=key, **body)

    async def _race(self, choice: tuple[int, list[str]]) -> None:
        """Do several things about one payment at once."""
        index, racers = choice
        intents = await self.owed.orders()
        if index < len(intents):
            await run_all(self._run(racer, intents[index]["id"], index) for racer in racers)

    async def _run(self, racer: str, intent: str, index: int) -> None:
        match racer:
            case "webhook":
                assert await self.shop.deliver(intent) == 200
            case "get":
                assert (await self.shop.get(self.buyer, intent))[0] in {200, 400, 404}
            case "repeat" if index < len(self.orders):
                assert (await self._create(self.orders[-1 - index]))[0] in {200, 400, 409}
            case "reconciliation":
                await self.pass_time(minutes=2)

    async def _kill(self, repeats: bool) -> None:
        """Cancel a request that waits for the response to its charge. A client repeats it, or does not."""
        order = self._ordered(charge=True)
        name = f"{self.buyer.uid}-{self.calls}"
        await self.shop.configure(secret_key=key_of(name=name, delay_ms=250))
        async with background(self._lose(order)) as lost:
            await until(lambda: self._is_charging(name))
            [waiting] = tasks_in("create_payment_intent")
            waiting.cancel()
            await lost
        await self.shop.configure()
        if repeats:
            async with self.shop.server.services.database.connection() as conn:  # A minute passes.
                await conn.execute("update idempotency_keys set claimed_at = '-infinity' where answered_at is null")
            assert (await self._create(order))[0] == 200

    async def _lose(self, order: tuple[str, dict[str, Any]]) -> None:
        with pytest.raises(aiohttp.ClientError):
            await self._create(order)

    def _is_charging(self, name: str) -> bool:
        """Whether the platform has made the charge, and its response is under way."""
        calls = [entry for entry in self.shop.sandbox.bill.since(0) if entry.key == name]
        return any(call.asked.get("path") == "payment_intents" and call.asked.get("key") for call in calls)

    async def _refund(self, choice: tuple[int, bool]) -> None:
        """Refund a payment of an order or of a subscription, or the half of what is left."""
        index, whole = choice
        if (intent := await self._paid(index)) and (left := await self.owed.not_refunded(intent)):
            amount = left if whole else (left + 1) // 2
            await self.shop.platform("refunds", payment_intent=intent["id"], amount=str(amount))

    async def _dispute(self, choice: tuple[int, str, bool]) -> None:
        """Open a dispute of a payment or of half of it, or let an open one end."""
        index, status, whole = choice
        if (intent := await self._paid(index)) and await self.owed.disputes(intent) in ([], ["needs_response"]):
            amount = intent["amount"] if whole else intent["amount"] // 2
            await self.shop.control("dispute", payment_intent=intent["id"], status=status, amount=amount)

    async def _paid(self, index: int) -> dict[str, Any] | None:
        paid = [intent for intent in await self.owed.payments() if intent["status"] == "succeeded"]
        return paid[index] if index < len(paid) else None

    async def _sync(self, index: int) -> None:
        intents = await self.owed.orders()
        if index < len(intents):
            assert (await self.shop.get(self.buyer, intents[index]["id"]))[0] in {200, 400, 404}

    async def _subscribe(self, with_card: bool) -> None:
        try:
            body = {"setup_intent_id": await setup(self.shop, self.buyer)} if with_card else {}
        except AssertionError:  # The platform fails.
            return
        status, _ = await subscribe(self.shop, self.buyer, **body)
        assert status in {200, 400}

    async def _cancel(self, _: None) -> None:
        for sub in await self.shop.listed("subscriptions", customer=self.customer):
            path = f"/bp/asset/cardpay_sub/{sub['id']}"
            assert (await self.shop.client_call(self.buyer, "DELETE", path))[0] in {200, 400, 404}

    async def _end_at(self, days: int) -> None:
        """Let the merchant cancel the subscriptions at a date."""
        now = (await self.shop.control("clock", by_s=0))["now"]
        for sub in await self.shop.listed("subscriptions", customer=self.customer):
            await self.shop.platform(f"subscriptions/{sub['id']}", cancel_at=str(now + days * 86400))

    async def _resume(self, _: None) -> None:
        """Subscribe again, which resumes what was cancelled."""
        await self._subscribe(with_card=False)

    async def _decline_renewals(self, _: None) -> None:
        failing = await self.shop.link(self.customer, "pm_card_chargeCustomerFail")
        await self.shop.link(self.customer)  # Orders charge the card that was linked last.
        for sub in await self.shop.listed("subscriptions", customer=self.customer):
            await self.shop.platform(f"subscriptions/{sub['id']}", default_payment_method=failing)

    async def _pass_time(self, minutes: int) -> None:
        """Let time pass, and stop where a renewal begins and where it has been charged."""
        end_s = await self._now_s() + 60 * minutes
        while (now_s := await self._now_s()) < end_s:
            renewals = await self.owed.renewals()
            stops = [at + by_s for at in renewals for by_s in (-60, 60, DRAFT_S) if now_s < at + by_s < end_s]
            await self.pass_time(minutes=(min([*stops, end_s]) - now_s + 1) / 60)
            await self.check_access()
            await until(self._is_read, within_s=30, every_s=0.05)
            await self.check_access()

    async def _is_read(self) -> bool:
        """Whether all paid invoices are granted. Otherwise some minutes pass, as the jobs run each minute."""
        granted = await self.granted()
        if set(await self.owed.invoices()) <= set(granted):
            return True
        await self.pass_time(minutes=2)
        return False

    async def _now_s(self) -> int:
        now: int = (await self.shop.control("clock", by_s=0))["now"]
        return now

    async def granted(self) -> list[str]:
        """The keys of the entries that grant subscriptions."""
        async with self.shop.server.services.database.connection() as conn:
            query = (
                "select key from asset_entries where uid = $1 and kind = 'grant' and subscription <> '' order by 1"
            )
            return [row["key"] for row in await conn.fetch(query, self.buyer.uid)]

    async def settled(self) -> bool:
        """Whether the user owns what the platform implies."""
        sold = await self._sold()
        if await self.shop.coins(self.buyer) != await self.owed.coins(sold):
            return False
        return await self.granted() == await self.owed.invoices() and await self.owed.lasts(await self.assets())

    async def _sold(self) -> set[str]:
        """The payments that grant a product, and charges without a row, which must not exist."""
        async with self.shop.server.services.database.connection() as conn:
            query = "select intent_id, product_id from card_payments where uid = $1 and intent_id is not null"
            rows = await conn.fetch(query, self.buyer.uid)
        known = {row["intent_id"] for row in rows}
        charged = {intent["id"] for intent in await self.owed.orders() if intent["status"] == "succeeded"}
        return {row["intent_id"] for row in rows if row["product_id"]} | (charged - known)

    async def _webhooks(self, fault: str | None) -> None:
        await self.shop.control("webhooks", fault=fault, delay_ms=300)

    async def _fail(self, choice: tuple[str, int]) -> None:
        fault, skip = choice
        self.calls += 1
        name = f"{self.buyer.uid}-{self.calls}"
        key = key_of(name=name, fault=fault, skip=skip, times=3, position=0, retry_after_s=0.01)
        await self.shop.configure(secret_key=key)

    async def pass_time(self, *, minutes: float) -> None:
        """Let time pass for the app, which starts the reconciliation."""
        clock = self.shop.server.services.clock
        at = utc_now() + timedelta(seconds=clock.offset_s("default"), minutes=minutes)
        body = {"app": "default", "at": rfc3339(at)}
        assert (await ask(self.shop.server, "POST", "/dev/clock", json=body))[0] == 200
        self.buyer = await self.shop.back(self.buyer.device)


def tasks_in(handler: str) -> list[asyncio.Task[Any]]:
    """The tasks that run a handler of requests."""
    return [task for task in asyncio.all_tasks() if handler in _names(task.get_coro())]


def _names(coroutine: Any) -> set[str]:
    """The functions that a coroutine waits in."""
    names = set()
    while (code := getattr(coroutine, "cr_code", None)) is not None:
        names.add(code.co_name)
        coroutine = coroutine.cr_await
    return names
