"""What no webhook and no client reports is found by reading back, and reported to operators."""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.payments.wallet.reconciliation import reconcile_wallet, reconcile_wallets
from storage.payments.endings import EndSubscriptions
from storage.payments.wallet.reconciliation import ReconcileWallet, ReconcileWallets
from storage.payments.wallet.subscriptions import EndReplacedSubscription
from streams.tasks import background
from tests.app.callers import working
from tests.app.operators import Operator
from tests.app.payments.wallet.passing import MINUTES, deactivate, is_cancelled, later
from tests.app.payments.wallet.wallets import PRODUCTS, WEBHOOK, Wallet, error, put, subscriptions
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of


async def check_times(wallet: Wallet, table: str) -> list[Any]:
    return [check_at for _, check_at in await states(wallet, table)]


async def states(wallet: Wallet, table: str) -> list[tuple[str, datetime | None]]:
    """The status of each row, and when it is read back."""
    return await wallet.rows(f"select status, check_at from {table} where uid = $1", wallet.uid)


async def test_a_payment_that_nobody_has_reported_is_granted(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"], fault="lost")
    await later(wallet)
    [(key, kind)] = await wallet.entries()
    assert kind == "grant"
    [missed] = [mismatch for mismatch in await wallet.mismatches("missed_entry") if mismatch["subject"] == key]
    assert (missed["app"], missed["platform"], missed["detail"]) == ("default", "walletpay", "grant")
    await later(wallet)
    assert await wallet.kinds() == ["grant"]


async def test_an_order_whose_capture_had_no_answer_is_granted(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    await later(wallet)
    assert await wallet.kinds() == ["grant"]
    [again] = await check_times(wallet, "wallet_orders")
    assert again - wallet.server.services.clock.now("default") > timedelta(hours=23)


async def test_an_order_that_nobody_approves_is_read_until_it_expires(wallet: Wallet) -> None:
    await wallet.order()
    await later(wallet)
    [again] = await check_times(wallet, "wallet_orders")
    assert timedelta() < again - wallet.server.services.clock.now("default") <= timedelta(minutes=1)
    await later(wallet, timedelta(hours=4))
    assert await check_times(wallet, "wallet_orders") == [None]


async def test_a_paid_subscription_is_read_once_a_day_and_at_its_renewal(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    [again] = await check_times(wallet, "wallet_subscriptions")
    assert again - wallet.server.services.clock.now("default") > timedelta(hours=23)
    await wallet.renew(sub_id)
    await wallet.reconcile()
    assert await wallet.kinds() == ["grant", "grant"]


async def test_a_cancelled_subscription_is_read_once_a_day_while_its_payments_may_be_reversed(
    wallet: Wallet,
) -> None:
    sub_id = await wallet.subscribed()
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/cancel", {"reason": "enough"})
    await later(wallet, timedelta(days=2))
    assert await wallet.kinds() == ["grant", "cancel"]
    [again] = await check_times(wallet, "wallet_subscriptions")
    assert again - wallet.server.services.clock.now("default") > timedelta(hours=23)
    await later(wallet, timedelta(days=180))
    assert await check_times(wallet, "wallet_subscriptions") == [None]


@pytest.mark.parametrize("path", ["walletpay/create", "walletpay_sub"])
async def test_what_was_created_without_an_answer_is_known_in_the_end(wallet: Wallet, path: str) -> None:
    table = "wallet_orders" if path.endswith("create") else "wallet_subscriptions"
    product = "coins" if path.endswith("create") else "month"
    await wallet.configure(client_secret=key_of(fault="cut_mid_stream", position="before"))
    headers = {"Idempotency-Key": uuid4().hex}
    assert error(await wallet.post(path, {"product_id": product}, **headers)) == (400, "backend unavailable")
    assert [status for status, _ in await states(wallet, table)] == ["NEW"]
    await wallet.configure(client_secret="sandbox")
    await later(wallet)
    [(status, _)] = await states(wallet, table)
    assert status in {"CREATED", "APPROVAL_PENDING"}
    assert (await wallet.post(path, {"product_id": product}, **headers))[0] == 200
    assert len(await states(wallet, table)) == 1


@pytest.mark.parametrize("path", ["walletpay/create", "walletpay_sub"])
async def test_what_was_never_created_is_given_up_when_its_key_is_forgotten(wallet: Wallet, path: str) -> None:
    table = "wallet_orders" if path.endswith("create") else "wallet_subscriptions"
    product = "coins" if path.endswith("create") else "month"
    await wallet.configure(client_secret=key_of(fault="unavailable"))
    assert error(await wallet.post(path, {"product_id": product})) == (400, "backend unavailable")
    await later(wallet)
    assert [status for status, _ in await states(wallet, table)] == ["NEW"]
    await later(wallet, timedelta(hours=72))
    [(status, check_at)] = await states(wallet, table)
    assert (status in {"VOIDED", "EXPIRED"}, check_at) == (True, None)


async def test_what_fails_is_due_again_and_does_not_stop_the_others(wallet: Wallet) -> None:
    for sub in await subscriptions(wallet, 10):
        await wallet.approve(sub["approve_link_href"], fault="lost")
    await wallet.configure(client_secret=key_of(fault="unavailable", rate=0.3, seed=1))
    await later(wallet)
    await wallet.configure(client_secret="sandbox")
    await later(wallet)
    assert await wallet.kinds() == ["grant"] * 10


async def test_a_config_whose_platform_hangs_does_not_delay_the_others(wallet: Wallet) -> None:
    for _ in range(9):
        await wallet.order()
    await put(wallet.server, "products", "coins", PRODUCTS["coins"] | {"walletpay": {"config": "Other"}})
    await wallet.configure(config="Other")
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    await wallet.configure(client_secret=key_of(fault="hang_before_headers"))
    await wallet.travel(utc_now() + MINUTES)

    await reconcile_wallets(wallet.server.services, ReconcileWallets())
    jobs = await wallet.rows("select args from procrastinate_jobs where task_name = $1", ReconcileWallet.task)
    hanging, other = (ReconcileWallet(**args) for (args,) in sorted(jobs, key=lambda job: job[0]["config"]))
    assert (hanging.config, other.config) == ("Default", "Other")
    async with background(reconcile_wallet(wallet.server.services, hanging)):
        await reconcile_wallet(wallet.server.services, other)
    assert await wallet.kinds() == ["grant"]


async def test_a_subscription_of_a_deactivated_user_is_cancelled(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    await wallet.configure(client_secret=key_of(fault="unavailable"))
    await deactivate(wallet)

    async def failed() -> bool:
        statement = "select attempts from procrastinate_jobs where task_name = $1 and status = 'todo'"
        return await wallet.rows(statement, EndSubscriptions.task) == [(1,)]

    async with working(wallet.server.services):
        await until(failed)
    await wallet.configure(client_secret="sandbox")
    await wallet.rows("update procrastinate_jobs set scheduled_at = null where status = 'todo' returning 1")
    async with working(wallet.server.services):
        await until(lambda: is_cancelled(wallet, sub_id))


async def test_a_subscription_that_is_approved_after_the_deactivation_is_cancelled(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await deactivate(wallet)
    async with working(wallet.server.services):
        await wallet.approve(sub["approve_link_href"], fault="lost")
        await later(wallet)
        await until(lambda: is_cancelled(wallet, sub["id"]))


async def test_workers_that_reconcile_at_once_grant_once(wallet: Wallet) -> None:
    for sub in await subscriptions(wallet, 3):
        await wallet.approve(sub["approve_link_href"], fault="lost")
    await wallet.travel(utc_now() + MINUTES)
    await asyncio.gather(*(wallet.reconcile() for _ in range(3)))
    assert await wallet.kinds() == ["grant"] * 3


async def test_an_upgrade_whose_job_was_lost_is_settled(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    new = (await wallet.upgrade(old))[1]["walletpay_sub"]
    await wallet.approve(new["approve_link_href"])
    await wallet.sync(new["id"])
    await wallet.rows("delete from procrastinate_jobs where task_name = $1", EndReplacedSubscription.task)
    await later(wallet)

    async def done() -> bool:
        return await wallet.rows("select state from wallet_upgrades") == [("done",)]

    async with working(wallet.server.services):
        await until(done)


async def test_events_that_no_webhook_has_delivered_are_found(wallet: Wallet) -> None:
    url = f"{wallet.server.url}/bp/webhook/walletpay/default/Default"
    await wallet.control("webhook", id=WEBHOOK, url=url)
    await wallet.control("deliveries", fault="lost")
    sub_id = await wallet.subscribed()
    sale = (await wallet.sync(sub_id))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await wallet.control("refund", payment_id=sale)
    await wallet.find_missed_events()
    assert await wallet.mismatches("missed_event") == []
    await wallet.travel(utc_now() + MINUTES)
    await wallet.find_missed_events()

    async def refunded() -> bool:
        return await wallet.kinds() == ["grant", "refund"]

    async with working(wallet.server.services):
        await until(refunded)
    missed = {mismatch["detail"] for mismatch in await wallet.mismatches("missed_event")}
    assert missed >= {"PAYMENT.SALE.COMPLETED", "PAYMENT.SALE.REFUNDED", "BILLING.SUBSCRIPTION.ACTIVATED"}
    count = len(await wallet.mismatches("missed_event"))
    await wallet.find_missed_events()
    assert len(await wallet.mismatches("missed_event")) == count


async def test_an_event_that_cannot_be_read_is_reported_once_and_hides_no_other(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    sale = (await wallet.sync(sub_id))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await wallet.control("refund", payment_id=sale)
    unreadable = [
        {"id": "WH-RESOURCE", "event_type": "PAYMENT.SALE.REFUNDED", "resource": "gone"},
        {"id": None, "event_type": None, "resource": None},
        7,
        {"id": "WH-NULLS", "event_type": None, "create_time": None, "resource_type": None, "resource": None},
    ]
    await wallet.control("list_garbage", events=unreadable)
    await wallet.travel(utc_now() + MINUTES)
    for _ in range(2):
        await wallet.find_missed_events()

    async def refunded() -> bool:
        return await wallet.kinds() == ["grant", "refund"]

    async with working(wallet.server.services):
        await until(refunded)
    reported = await wallet.mismatches("unreadable_event")
    named = {mismatch["subject"]: mismatch["detail"] for mismatch in reported}
    assert len(reported) == len(named) == 3
    assert named.pop("WH-RESOURCE") == "resource must be an object"
    assert all(subject.startswith("sha256:") for subject in named)


async def test_many_events_are_compared_page_by_page(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    path = f"/v1/billing/subscriptions/{sub_id}"
    for _ in range(55):
        await wallet.platform("POST", f"{path}/suspend", {"reason": "one"})
        await wallet.platform("POST", f"{path}/activate", {"reason": "other"})
    await wallet.travel(utc_now() + MINUTES)
    await wallet.find_missed_events()
    assert len(await wallet.rows("select 1 from webhooks")) == 113


async def test_a_platform_that_does_not_list_its_events_is_asked_again(wallet: Wallet) -> None:
    await wallet.subscribed()
    await wallet.travel(utc_now() + MINUTES)
    await wallet.configure(client_secret=key_of(fault="server_error"))
    await wallet.find_missed_events()
    assert await wallet.rows("select 1 from event_cursors") == []
    await wallet.configure(client_secret="sandbox")
    await wallet.find_missed_events()
    assert await wallet.mismatches("missed_event") != []


async def test_the_report_is_paged_and_belongs_to_an_app(wallet: Wallet) -> None:
    for sub in await subscriptions(wallet, 3):
        await wallet.approve(sub["approve_link_href"], fault="lost")
    await later(wallet)
    operator = Operator(wallet.server)
    first = (await operator("GET", "payments/mismatches?size=2")).body
    second = (await operator("GET", f"payments/mismatches?size=2&before={first['next']}")).body
    assert (len(first["mismatches"]), len(second["mismatches"]), second.get("next")) == (2, 1, None)
    assert (await operator("GET", "payments/mismatches?app=other")).body["mismatches"] == []
