"""In whatever order things happen, and whatever is lost or repeated, every payment is granted exactly once."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.assets.differences import find_differences
from streams.wire.period import Period
from tests.app.payments.wallet.schedule import PAID, STEPS, Schedule
from tests.app.payments.wallet.wallets import PRODUCTS, WEBHOOK, ZERO, put, wallet_at
from tests.running.servers import Server
from vendors.sandbox.server import Running

GRACE = timedelta(days=10)


async def run_examples(server: Server, sandbox: Running, *, count: int, steps: int) -> None:
    """Run schedules that hypothesis generates, each for a new user. Hypothesis blocks a thread of its own."""
    many = {"count": 1000, "per_s": 1}
    await put(server, "limits", "default", {"rates": {"wallets": many, "payment_reads": many, "signup": many}})
    loop = asyncio.get_running_loop()

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(STEPS, min_size=3, max_size=steps))
    def run_example(steps: list[tuple[str, Any]]) -> None:
        asyncio.run_coroutine_threadsafe(example(server, sandbox, steps), loop).result()

    await asyncio.to_thread(run_example)


async def example(server: Server, sandbox: Running, steps: list[tuple[str, Any]]) -> None:
    async with wallet_at(server, sandbox) as wallet:
        url = f"{server.url}/bp/webhook/walletpay/default/Default"
        await wallet.control("webhook", id=WEBHOOK, url=url)
        await wallet.configure(grace_s=int(GRACE.total_seconds()))
        schedule = Schedule(wallet)
        for step in steps:
            await schedule.run(step)
        await schedule.finish()
        await check(schedule)


async def test_every_payment_is_granted_once_whatever_happens(shared_server: Server, platform: Running) -> None:
    await run_examples(shared_server, platform, count=2, steps=10)


SUSPENDED = [("subscribe", "lost"), ("sync_sub", 0), ("suspend", 0)]
REVISED = [("subscribe", "lost"), ("sync_sub", 0), ("revise", 0)]


@pytest.mark.parametrize(
    "steps",
    [
        [
            ("buy", ""),
            ("capture", 0),
            ("use_coins", 0),
            ("refund_order", 0),
            ("work", 0),
            ("buy", ""),
            ("capture", 1),
        ],
        [*SUSPENDED, ("sync_sub", 0)],
        [*SUSPENDED, ("sync_sub", 0), ("cancel", 0)],
        [*SUSPENDED, ("sync_sub", 0), ("activate", 0), ("renew", 0), ("refund", 0)],
        [*REVISED, ("renew", 0)],
        [*REVISED, ("renew", 0), ("renew", 0), ("revise", 0), ("sync_sub", 0), ("renew", 0)],
        [
            *REVISED,
            ("renew", 0),
            ("sync_sub", 0),
            ("use_units", 0),
            ("revise", 0),
            ("renew", 0),
            ("upgrade", "lost"),
        ],
        [
            ("subscribe", ""),
            ("sync_sub", 0),
            ("use_units", 0),
            ("use_units", 0),
            ("upgrade", "lost"),
            ("sync_sub", 1),
        ],
        [("subscribe", "lost"), ("sync_sub", 0), ("renew", 0), ("renew", 0), ("work", 0)],
        [("subscribe", "lost"), ("sync_sub", 0), ("decline", 0), ("renew", 0), ("work", 0)],
    ],
    ids=[
        "used and refunded",
        "suspended",
        "suspended and cancelled",
        "activated and refunded",
        "revised",
        "revised twice",
        "revised and upgraded",
        "used and upgraded",
        "renewed",
        "declined",
    ],
)
async def test_assets_follow_from_the_books(
    shared_server: Server, platform: Running, steps: list[tuple[str, Any]]
) -> None:
    await example(shared_server, platform, steps)


@pytest.mark.soak
async def test_every_payment_is_granted_once_in_many_schedules(shared_server: Server, platform: Running) -> None:
    await run_examples(shared_server, platform, count=300, steps=40)


async def check(schedule: Schedule) -> None:
    wallet = schedule.wallet
    entries = await wallet.entries()
    assert not [key for key, count in Counter(key for key, _ in entries).items() if count > 1]
    keys = {key for key, _ in entries}
    captured = [capture for order in schedule.orders for capture in await schedule.captures(order)]
    paid = {f"wallet:capture:{capture['id']}" for capture in captured if capture["status"] in PAID}
    replaced = await wallet.rows(
        "select subscription_id, superseded_at from wallet_subscriptions where uid = $1", wallet.uid
    )
    _, answer = await wallet.get("")
    owned = {asset["receipt_id"]: asset for asset in answer["assets"] if asset["type"] == "subscription"}
    refunded_instead = set()
    for sub_id, superseded_at in replaced:
        sales = {f"wallet:sale:{payment['id']}" for payment in await schedule.payments(sub_id)}
        (paid if superseded_at is None else refunded_instead).update(sales)
        await check_subscription(schedule, sub_id, keys, is_replaced=superseded_at is not None)
        await check_asset(schedule, sub_id, owned.get(sub_id), is_replaced=superseded_at is not None)
    assert {key for key, kind in entries if kind == "grant"} - refunded_instead == paid
    coins = [asset["quantity"] for asset in answer["assets"] if asset["name"] == "coins"]
    kept = sum(capture["status"] == "COMPLETED" for capture in captured)
    assert sum(coins) == max(0, 100 * kept - schedule.used)
    assert {sub_id for sub_id, _ in replaced} == set(schedule.subs)
    await check_books(schedule)
    statement = "select state from wallet_upgrades join wallet_subscriptions on row_id = new_row where uid = $1"
    assert {state for (state,) in await wallet.rows(statement, wallet.uid)} <= {
        "done",
        "abandoned",
        "awaiting_approval",
    }
    pending = """
        select 1 from wallet_refunds join wallet_subscriptions s on s.row_id = subscription_row
        where state in ('pending', 'accepted') and uid = $1
    """
    assert await wallet.rows(pending, wallet.uid) == []
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []


async def check_books(schedule: Schedule) -> None:
    """Nothing was charged without an order, and a repeated request has created one."""
    books = await schedule.wallet.books()
    charged = {payment["order_id"] or payment["subscription_id"] for payment in books["payments"]}
    assert charged <= {*schedule.orders, *schedule.subs}
    statement = "select count(*) from wallet_orders where uid = $1 and status = 'NEW'"
    assert await schedule.wallet.rows(statement, schedule.wallet.uid) == [(0,)]
    created = [call["key"] for call in schedule.wallet.calls("/v2/checkout/orders")]
    uids = await schedule.wallet.rows("select row_id from wallet_orders where uid = $1", schedule.wallet.uid)
    rows = {row_id for (row_id,) in uids}
    assert {key.removesuffix(":create") for key in created} >= rows
    assert len(rows) <= schedule.bought + len(schedule.keys)


async def check_subscription(schedule: Schedule, sub_id: str, keys: set[str], *, is_replaced: bool) -> None:
    """A payment is granted, or the subscription is replaced and the payment refunded."""
    payments = await schedule.payments(sub_id)
    for payment in payments:
        is_granted = f"wallet:sale:{payment['id']}" in keys
        assert is_granted or (is_replaced and payment["status"] != "COMPLETED")
        if not is_replaced:
            assert (f"refund:{payment['id']}" in keys) is (payment["status"] == "REFUNDED")
    if is_replaced:
        assert (await schedule.sub(sub_id))["status"] in {"CANCELLED", "EXPIRED"}
        assert payments[-1]["status"] in {"PARTIALLY_REFUNDED", "REFUNDED"}
        await check_refunds(schedule, sub_id)


async def check_refunds(schedule: Schedule, sub_id: str) -> None:
    """An upgrade refunds no more of a period than its unused units are worth."""
    statement = """
        select r.sale_id, r.amount, g.quantity, (
            select coalesce(sum(quantity), 0) from asset_entries used
            where used.subscription = $1 and used.ends_at = g.ends_at and used.kind = 'consume')
        from wallet_refunds r join asset_entries g on g.key = 'wallet:sale:' || r.sale_id
        where g.subscription = $1
    """
    books = {payment["id"]: payment["amount"] for payment in (await schedule.wallet.books())["payments"]}
    for sale, refunded, granted, used in await schedule.wallet.rows(statement, sub_id):
        assert not granted or refunded <= books[sale] * (granted - used) / granted + 1


async def check_asset(schedule: Schedule, sub_id: str, asset: dict[str, Any] | None, *, is_replaced: bool) -> None:
    """The asset ends when the platform's books say so, and has the units of its period."""
    payments = await schedule.payments(sub_id)
    if asset is None:
        assert is_replaced or not payments
        return
    if is_replaced:
        assert asset["valid_seconds"] == 0
        return
    last, sub = payments[-1], await schedule.sub(sub_id)
    books = {payment["id"]: payment for payment in (await schedule.wallet.books())["payments"]}
    plan_id = books[last["id"]]["plan_id"]
    product = next(config for config in PRODUCTS.values() if config["walletpay"].get("plan_id") == plan_id)
    assert asset["product_id"] == plan_id
    assert asset["total_quantity"] == product.get("quantity", 0)
    assert asset["custom_expire_time"] == ZERO
    if last["status"] == "REFUNDED":
        assert (asset["valid_seconds"], asset["is_refund"]) == (0, True)
        return
    end = Period.parse(product["period"]).after(datetime.fromisoformat(last["time"]).astimezone(UTC))
    if sub["status"] == "SUSPENDED":
        end += GRACE
    elif sub["status"] == "ACTIVE":
        billed_next = datetime.fromisoformat(sub["billing_info"]["next_billing_time"])
        failed = sub["billing_info"].get("last_failed_payment")
        if failed is None or failed["time"] < last["time"]:
            end = max(end, billed_next + timedelta(days=1))
            assert asset["valid_seconds"] > 0
    assert datetime.fromisoformat(asset["expire_time"]) == end
