"""Whatever is lost, repeated or reordered, users own in the end what they have paid for."""

import asyncio
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from storage.assets.differences import find_differences
from streams.tasks import background, run_all
from streams.wire.codec import from_rfc3339, rfc3339
from tests.app.callers import ask, working
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import setup, subscribe
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of

FAULTS = ["cut_mid_stream", "refuse", "unavailable"]
RACERS = st.sampled_from(["webhook", "get", "repeat", "reconciliation"])
STEPS = st.one_of(
    st.tuples(st.just("buy"), st.sampled_from(["charge", "confirm", "leave"])),
    st.tuples(st.just("refund"), st.integers(0, 3)),
    st.tuples(st.just("dispute"), st.tuples(st.integers(0, 3), st.sampled_from(["needs_response", "won", "lost"]))),
    st.tuples(st.just("sync"), st.integers(0, 3)),
    st.tuples(st.just("subscribe"), st.booleans()),
    st.tuples(st.just("cancel"), st.none()),
    st.tuples(st.just("end_at"), st.sampled_from([3, 40])),
    st.tuples(st.just("resume"), st.none()),
    st.tuples(st.just("pass_time"), st.sampled_from([40, 31 * 24 * 60])),
    st.tuples(st.just("decline_renewals"), st.none()),
    st.tuples(st.just("webhooks"), st.sampled_from(["lost", "duplicate", "delayed", "reordered", None])),
    st.tuples(st.just("race"), st.tuples(st.integers(0, 3), st.lists(RACERS, min_size=2, max_size=4))),
    st.tuples(st.just("kill"), st.booleans()),
    st.tuples(st.just("fail"), st.tuples(st.sampled_from(FAULTS), st.integers(0, 4))),
)


class Schedule:
    """Plays steps for one user. The platform knows what was paid in the end."""

    def __init__(self, shop: Shop, buyer: Buyer) -> None:
        self.shop = shop
        self.buyer = buyer
        self.customer = ""
        self.calls = 0
        self.orders: list[tuple[str, dict[str, Any]]] = []
        """The idempotency key and the body of each request for a payment."""

    async def begin(self) -> None:
        self.customer = (await self.shop.created(self.buyer))["customer_id"]
        await self.shop.link(self.customer)

    async def watch(self) -> None:
        """Wait until the events of the platform are read from now on. The worker runs."""
        async with self.shop.server.services.database.connection() as conn:
            await conn.execute("delete from event_cursors")
            await self.pass_time(minutes=2)
            await until(lambda: conn.fetchval("select count(*) from event_cursors where kind = 'cardpay'"))

    async def play(self, step: str, choice: Any) -> None:
        await getattr(self, f"_{step}")(choice)

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
        intents = await self.intents()
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

    async def _refund(self, index: int) -> None:
        paid = [intent for intent in await self.intents() if intent["status"] == "succeeded"]
        if index < len(paid) and not await self.reversals(paid[index]["id"]):
            await self.shop.platform("refunds", payment_intent=paid[index]["id"])

    async def _dispute(self, choice: tuple[int, str]) -> None:
        """Open a dispute, or let an open one end."""
        index, status = choice
        paid = [intent for intent in await self.intents() if intent["status"] == "succeeded"]
        if index < len(paid) and await self.reversals(paid[index]["id"]) in ([], ["needs_response"]):
            await self.shop.control("dispute", payment_intent=paid[index]["id"], status=status)

    async def _sync(self, index: int) -> None:
        intents = await self.intents()
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
        await self.pass_time(minutes=minutes)

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

    async def intents(self) -> list[dict[str, Any]]:
        """The payments of the user that the server has created, the newest first."""
        found = await self.shop.listed("payment_intents", customer=self.customer, limit="100")
        return [intent for intent in found if "payment_id" in intent["metadata"] and intent["amount"] == 199]

    async def reversals(self, intent: str) -> list[str]:
        """The statuses of the refunds and disputes of a payment."""
        found = [await self.shop.listed(kind, payment_intent=intent) for kind in ("refunds", "disputes")]
        return [reversal["status"] for listed in found for reversal in listed]

    async def expected(self) -> tuple[int, list[str]]:
        """The coins of the user, and the paid invoices."""
        paid = [intent["id"] for intent in await self.intents() if intent["status"] == "succeeded"]
        sold = await self._sold()
        coins = 100 * sum([await self.reversals(intent) in ([], ["won"]) for intent in paid if intent in sold])
        invoices = await self.shop.listed("invoices", customer=self.customer, status="paid", limit="100")
        return coins, sorted(f"card:{invoice['id']}" for invoice in invoices)

    async def _sold(self) -> set[str]:
        """The payments that grant a product, and charges without a row, which must not exist."""
        async with self.shop.server.services.database.connection() as conn:
            query = "select intent_id, product_id from card_payments where uid = $1 and intent_id is not null"
            rows = await conn.fetch(query, self.buyer.uid)
        known = {row["intent_id"] for row in rows}
        charged = {intent["id"] for intent in await self.intents() if intent["status"] == "succeeded"}
        return {row["intent_id"] for row in rows if row["product_id"]} | (charged - known)

    async def owned(self) -> tuple[int, list[str]]:
        async with self.shop.server.services.database.connection() as conn:
            query = (
                "select key from asset_entries where uid = $1 and kind = 'grant' and subscription <> '' order by 1"
            )
            granted = [row["key"] for row in await conn.fetch(query, self.buyer.uid)]
        return await self.shop.coins(self.buyer), granted

    async def settled(self) -> bool:
        return await self.owned() == await self.expected() and await self.lasts_as_paid()

    async def lasts_as_paid(self) -> bool:
        """Whether the user has access while the platform renews a subscription, or until its paid period ends."""
        _, answer = await self.shop.client_call(self.buyer, "GET", "/bp/asset")
        assets = {asset["receipt_id"]: asset for asset in answer["assets"]}
        for sub in await self.shop.listed("subscriptions", customer=self.customer, status="all", limit="100"):
            paid = await self.shop.listed("invoices", subscription=sub["id"], status="paid", limit="100")
            if not paid:
                continue
            asset, paid_end = assets[paid[0]["id"]], paid[0]["lines"]["data"][0]["period"]["end"]
            end, valid = from_rfc3339(asset["expire_time"]).timestamp(), asset["valid_seconds"] > 0
            if sub["status"] in {"active", "trialing"}:
                if not valid or end > paid_end + 86400:
                    return False
            elif end != min(paid_end, sub["cancel_at"] or paid_end):
                return False
        return True


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


async def run_examples(shop: Shop, *, count: int, shortest: int = 3, longest: int = 10) -> None:
    """Run schedules that hypothesis generates, each for a new user. Hypothesis blocks a thread of its own."""
    loop = asyncio.get_running_loop()

    # Without shrinking, which would wait for each failing example.
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(STEPS, min_size=shortest, max_size=longest))
    def run_example(steps: list[tuple[str, Any]]) -> None:
        asyncio.run_coroutine_threadsafe(example(shop, steps), loop).result()

    await asyncio.to_thread(run_example)


async def example(shop: Shop, steps: list[tuple[str, Any]]) -> None:
    schedule = Schedule(shop, await shop.buyer())
    await schedule.begin()
    await shop.stop_webhooks()
    await shop.send_webhooks()
    async with working(shop.server.services):
        await schedule.watch()
        for step, choice in steps:
            await schedule.play(step, choice)
        await shop.configure()
        await shop.control("webhooks")
        await schedule.pass_time(minutes=5)
        await until(schedule.settled, within_s=30)
    await shop.stop_webhooks()
    await shop.reset_clocks()
    async with shop.server.services.database.connection() as conn:
        await conn.execute("delete from procrastinate_jobs")
    assert [difference async for difference in find_differences(shop.server.services.database)] == []


async def test_assets_follow_from_what_was_paid(shop: Shop) -> None:
    await run_examples(shop, count=3)


@pytest.mark.parametrize("status", ["won", "lost"])
async def test_assets_follow_from_the_result_of_a_dispute(shop: Shop, status: str) -> None:
    steps = [
        ("dispute", (0, "needs_response")),
        ("race", (0, ["webhook", "reconciliation"])),
        ("dispute", (0, status)),
    ]
    await example(shop, [("buy", "charge"), *steps])


async def test_requests_that_are_killed_or_race_grant_once(shop: Shop) -> None:
    at_once = [["webhook", "get", "repeat", "reconciliation"], ["repeat", "repeat", "get", "webhook"]]
    races = [("race", (0, racers)) for racers in at_once]
    lost, found = ("webhooks", "lost"), ("webhooks", None)
    await example(shop, [lost, ("kill", True), *races, found, ("kill", False), *races, ("refund", 0), *races])


@pytest.mark.soak
async def test_assets_follow_from_what_was_paid_in_many_schedules(shop: Shop) -> None:
    await run_examples(shop, count=150)


@pytest.mark.soak
async def test_assets_follow_from_what_was_paid_in_long_schedules(shop: Shop) -> None:
    await run_examples(shop, count=25, shortest=30, longest=60)
