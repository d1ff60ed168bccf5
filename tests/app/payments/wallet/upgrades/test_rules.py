"""What can be upgraded to what: other sources and targets are refused, and nothing changes."""

from datetime import timedelta

import pytest

from storage.assets import ledger
from storage.assets.entries import Entry
from tests.app.payments.wallet.wallets import PRODUCTS, TRIAL, YEARLY, Wallet, add_weekly, error, put
from tests.calendar.clock import utc_now


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("trial", (400, "invalid_operation")),
        ("paid_trial", (400, "invalid_operation")),
        ("hidden_trial", (400, "invalid_operation")),
        ("month", (400, "invalid_operation")),
        ("coins", (400, "invalid_parameter")),
        ("", (400, "invalid_parameter")),
        ("nothing", (422, "config_invalid")),
        ("without_plan", (422, "config_invalid")),
        ("unknown_plan", (400, "backend unavailable")),
    ],
)
async def test_a_target_that_is_not_allowed_is_refused(
    wallet: Wallet, product: str, expected: tuple[int, str]
) -> None:
    year = PRODUCTS["year"]
    trial = {"trial": {"period": "P1W", "amount": 100}}
    await put(wallet.server, "products", "paid_trial", {**year, **trial})
    await put(wallet.server, "products", "hidden_trial", {**year, "walletpay": {"plan_id": TRIAL}})
    await put(wallet.server, "products", "without_plan", {**year, "walletpay": {}})
    await put(wallet.server, "products", "unknown_plan", {**year, "walletpay": {"plan_id": "P-NONE"}})
    old = await wallet.subscribed()
    assert error(await wallet.upgrade(old, product)) == expected
    assert await wallet.rows("select 1 from wallet_upgrades") == []


async def test_a_source_that_is_not_active_is_refused(wallet: Wallet) -> None:
    pending = await wallet.subscribe()
    assert error(await wallet.upgrade(pending["id"])) == (400, "invalid_operation")
    path = f"/v1/billing/subscriptions/{await wallet.subscribed()}"
    await wallet.platform("POST", f"{path}/suspend", {"reason": "unpaid"})
    assert error(await wallet.upgrade(path.rpartition("/")[2])) == (400, "invalid_operation")
    await wallet.platform("POST", f"{path}/cancel", {"reason": "enough"})
    assert error(await wallet.upgrade(path.rpartition("/")[2])) == (400, "invalid_operation")


async def test_a_source_of_another_platform_is_refused(wallet: Wallet) -> None:
    now = utc_now()
    entry = Entry(
        "card:1", "grant", "pro", "subscription", "sub_1", ends_at=now + timedelta(days=1), platform="cardpay"
    )
    async with wallet.server.services.database.transaction() as conn:
        await ledger.post(conn, "default", wallet.uid, entry=entry, now=now, sinks=wallet.server.services.sinks)
    assert error(await wallet.upgrade("sub_1")) == (400, "subscription_unsupported_upgrade")


async def test_a_source_whose_plan_is_about_to_change_is_refused_until_it_has(wallet: Wallet) -> None:
    await add_weekly(wallet)
    old = await wallet.subscribed()
    revised = await wallet.platform("POST", f"/v1/billing/subscriptions/{old}/revise", {"plan_id": YEARLY})
    assert (await wallet.upgrade(old, "week"))[0] == 200
    await wallet.approve(next(link["href"] for link in revised["links"] if link["rel"] == "approve"))
    status, answer = await wallet.upgrade(old, "week")
    message = "invalid_operation: the plan of the subscription is about to change"
    assert (status, answer["error"]["message"]) == (400, message)
    await wallet.renew(old)
    assert (await wallet.upgrade(old, "week"))[0] == 200
