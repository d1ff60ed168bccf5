"""An operator reads why an order has granted nothing."""

from typing import Any

import pytest

from streams.wire.codec import dumps
from tests.app.operator_calls import call
from tests.app.payments.wallet.wallets import Wallet


async def trace(wallet: Wallet, order: str) -> dict[str, Any]:
    path = f"/admin/api/users/default/{wallet.uid}/orders/{order}"
    status, answer = await call(wallet.server, "GET", path)
    assert status == 200, answer
    traced: dict[str, Any] = answer
    return traced


async def execute(wallet: Wallet, statement: str, *values: Any) -> None:
    async with wallet.server.services.database.connection() as conn:
        await conn.execute(statement, *values)


async def test_an_order_says_what_it_waits_for_and_then_that_it_was_granted(wallet: Wallet) -> None:
    order = await wallet.order()
    assert (await trace(wallet, order["id"]))["verdict"] == "not_approved"
    await wallet.approve(order["approve_link_href"])
    await wallet.capture(order["id"])
    traced = await trace(wallet, order["id"])
    assert traced["verdict"] == "granted"
    assert [(entry["kind"], entry["name"], entry["quantity"]) for entry in traced["entries"]] == [
        ("grant", "coins", 100)
    ]
    assert (traced["order"]["amount"], traced["order"]["platform"]) == (199, "walletpay")
    row_id = traced["order"]["row_id"]
    assert (await trace(wallet, row_id))["order"]["platform_id"] == order["id"]
    _, answer = await call(wallet.server, "GET", "/admin/api/payments/orders?platform=walletpay&size=1")
    assert answer["orders"][0]["row_id"] == row_id
    _, oldest = await call(
        wallet.server, "GET", "/admin/api/payments/orders?sort=created&status=completed&size=100"
    )
    assert row_id in [order["row_id"] for order in oldest["orders"]]
    assert (await call(wallet.server, "GET", f"/admin/api/users/default/{wallet.uid}/orders/nope"))[0] == 404


@pytest.mark.parametrize(
    ("status", "product", "verdict"),
    [
        ("succeeded", None, "no_product"),
        ("succeeded", "coins", "paid_not_granted"),
        ("requires_action", "coins", "needs_customer"),
        ("requires_payment_method", "coins", "not_paid"),
        ("abandoned", "coins", "canceled"),
        ("new", "coins", "not_created"),
    ],
)
async def test_a_payment_with_a_card_says_why_it_has_granted_nothing(
    wallet: Wallet, status: str, product: str | None, verdict: str
) -> None:
    await execute(
        wallet,
        "insert into card_payments (payment_id, app_id, uid, config, amount, currency, product_id, intent_id,"
        " status, created_at, checked_at)"
        " values ($1, 'default', $2, 'Default', 100, 'usd', $3, $4, $5, now(), now())",
        f"p-{verdict}", wallet.uid, product, f"pi-{verdict}", status,
    )  # fmt: skip
    assert (await trace(wallet, f"pi-{verdict}"))["verdict"] == verdict


async def test_an_amount_that_differs_and_a_webhook_that_fails_are_named(wallet: Wallet) -> None:
    await execute(
        wallet,
        "insert into card_payments (payment_id, app_id, uid, config, amount, currency, product_id, intent_id,"
        " status, created_at, checked_at) values ('p', 'default', $1, 'c', 100, 'usd', 'coins', 'pi', 'succeeded',"
        " now(), now())",
        wallet.uid,
    )
    await execute(
        wallet,
        "insert into webhooks (webhook_id, app_id, source, config, headers, body, received_at, status, error)"
        " values ('w', 'default', 'cardpay', 'c', '{}', '{\"id\":\"pi\"}', now(), 'failed', 'no such config')",
    )
    traced = await trace(wallet, "pi")
    assert (traced["verdict"], traced["webhooks"][0]["error"]) == ("webhook_failed", "no such config")
    await execute(
        wallet,
        "insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)"
        " values ('default', 'cardpay', 'amount_differs', 'pi', '1 instead of 2', now())",
    )
    traced = await trace(wallet, "pi")
    assert (traced["verdict"], traced["mismatches"][0]["detail"]) == ("amount_differs", "1 instead of 2")


async def test_a_declined_capture_and_a_reviewed_one_are_told_from_an_order_that_nobody_approved(
    wallet: Wallet,
) -> None:
    order = await wallet.order()
    await execute(wallet, "update wallet_orders set declined = 1 where order_id = $1", order["id"])
    assert (await trace(wallet, order["id"]))["verdict"] == "declined"
    body = dumps({"event_type": "PAYMENT.CAPTURE.PENDING", "resource": {"id": "C-1", "order": order["id"]}})
    await execute(
        wallet,
        "insert into webhooks (webhook_id, app_id, source, config, headers, body, received_at, status)"
        " values ('w', 'default', 'walletpay', 'c', '{}', $1, now(), 'done')",
        body,
    )
    traced = await trace(wallet, order["id"])
    assert (traced["verdict"], traced["webhooks"][0]["event_type"]) == ("under_review", "PAYMENT.CAPTURE.PENDING")


async def test_an_order_whose_config_was_deleted_says_so(wallet: Wallet) -> None:
    order = await wallet.order()
    await execute(wallet, "update wallet_orders set config = 'Deleted' where order_id = $1", order["id"])
    assert (await trace(wallet, order["id"]))["verdict"] == "config_unusable"


async def test_the_history_says_which_orders_have_granted_something(wallet: Wallet) -> None:
    paid, open_order = await wallet.order(), await wallet.order()
    await wallet.approve(paid["approve_link_href"])
    await wallet.capture(paid["id"])
    path = f"/admin/api/users/default/{wallet.uid}/history?kinds=order"
    _, answer = await call(wallet.server, "GET", path)
    granted = {row["facts"]["order_id"]: row["facts"]["granted"] for row in answer["history"]}
    assert granted == {paid["id"]: True, open_order["id"]: False}
