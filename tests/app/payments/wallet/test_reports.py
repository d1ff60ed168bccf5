"""Payments and refunds by wallet, and the entries of the ledger, are reported to sinks once each."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.app.callers import working
from tests.app.payments.reports import add_sink, brief, reported
from tests.app.payments.wallet.wallets import Wallet
from tests.calendar.clock import utc_now
from tests.waiting import until


@pytest.fixture
async def wallet(wallet: Wallet) -> Wallet:
    await add_sink(wallet.server, events=["purchase", "asset"])
    return wallet


async def test_an_order_and_its_refund_are_reported(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    assert await reported(wallet.server, wallet.uid) == []
    await asyncio.gather(*(wallet.capture(order["id"]) for _ in range(3)))
    [charge] = await reported(wallet.server, wallet.uid)
    assert charge == {
        "user_id": wallet.uid,
        "kind": "charge",
        "platform": "walletpay",
        "config": "Default",
        "transaction_id": charge["transaction_id"],
        "refund_id": None,
        "subscription_id": None,
        "product_id": "coins",
        "amount": 199,
        "currency": "USD",
        "device_info": None,
    }
    capture = charge["transaction_id"]
    await wallet.control("refund", payment_id=capture)
    for _ in range(2):
        await wallet.get(f"walletpay/sync/{order['id']}")
    assert brief(await reported(wallet.server, wallet.uid)) == [("charge", capture, 199), ("refund", capture, 199)]


async def test_each_entry_of_the_ledger_is_reported_as_it_is(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.capture(order["id"])
    [(capture, _)] = await wallet.entries()
    assert await reported(wallet.server, wallet.uid, "asset") == [
        {
            "user_id": wallet.uid,
            "key": capture,
            "kind": "grant",
            "name": "coins",
            "type": "consumable",
            "subscription": "",
            "quantity": 100,
            "starts_at": None,
            "ends_at": None,
            "platform": "walletpay",
            "product_id": "PROD-0XB74586CH345074B",
            "bp_product_id": "coins",
            "receipt_id": order["id"],
            "origin": "purchase",
            "channel": "client",
            "is_trial": False,
            "renews": False,
            "grace_ends_at": None,
            "reverses": "",
            "happened_at": None,
        }
    ]


async def test_a_subscription_is_charged_and_renews(wallet: Wallet) -> None:
    await wallet.travel(datetime(2027, 3, 15, 12, tzinfo=UTC))
    sub = await wallet.subscribed()
    await wallet.renew(sub, times=2)
    await wallet.sync(sub)
    purchases = await reported(wallet.server, wallet.uid)
    assert [event["kind"] for event in purchases] == ["charge", "renewal", "renewal"]
    assert {(event["subscription_id"], event["product_id"], event["amount"]) for event in purchases} == {
        (sub, "month", 999)
    }
    periods = await reported(wallet.server, wallet.uid, "asset")
    starts = ["2027-04-15T10:00:00Z", "2027-05-15T10:00:00Z"]
    assert [period["starts_at"] for period in periods[1:]] == starts
    assert [period["ends_at"] for period in periods[1:]] == [*starts[1:], "2027-06-15T10:00:00Z"]
    assert [period["grace_ends_at"] for period in periods] == ["2027-04-16T10:00:00Z", None, "2027-06-16T10:00:00Z"]


async def test_the_refunds_of_an_upgrade_are_reported_once_they_are_made(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    await wallet.travel(utc_now() + timedelta(days=10))
    _, answer = await wallet.upgrade(old)
    await wallet.approve(answer["walletpay_sub"]["approve_link_href"])
    await wallet.get(f"walletpay_sub/{answer['walletpay_sub']['id']}/sync_upgrade")
    charges = brief(await reported(wallet.server, wallet.uid))
    assert [(kind, amount) for kind, _, amount in charges] == [("charge", 999), ("charge", 9900)]

    async def refunded() -> bool:
        return len(await reported(wallet.server, wallet.uid)) == 3

    async with working(wallet.server.services):
        await until(refunded)
    refund = (await reported(wallet.server, wallet.uid))[-1]
    assert (refund["kind"], refund["transaction_id"], refund["subscription_id"]) == ("refund", charges[0][1], old)
    assert 0 < refund["amount"] < 999
    assert refund["refund_id"]


async def test_a_payment_is_not_reported_if_its_transaction_is_rolled_back(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    async with wallet.server.services.database.connection() as conn:
        await conn.execute(
            "create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$"
        )
        await conn.execute(
            "create trigger refuse before update on wallet_orders for each row execute function refuse()"
        )
        try:
            assert (await wallet.capture(order["id"]))[0] >= 500
            assert await wallet.entries() == []
            assert await reported(wallet.server, wallet.uid) == []
            assert await reported(wallet.server, wallet.uid, "asset") == []
        finally:
            await conn.execute("drop function refuse cascade")
    await wallet.capture(order["id"])
    assert len(await reported(wallet.server, wallet.uid)) == 1
    assert len(await reported(wallet.server, wallet.uid, "asset")) == 1
