"""Webhooks of the wallet platform are hints: whatever they say and however they come, what is read back counts."""

from datetime import timedelta
from typing import Any

import pytest

from streams.wire.codec import dumps
from tests.app.callers import ask, working
from tests.app.operators import Operator
from tests.app.payments.wallet.deliveries import PATH, deliver
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet, another
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.authority import ROOT
from vendors.sandbox.faults import key_of
from vendors.sandbox.payments.paypal.webhooks import signed


@pytest.fixture(autouse=True)
async def _connected(wallet: Wallet) -> None:
    await wallet.control("webhook", id=WEBHOOK, url=wallet.server.url + PATH)


def event(event_type: str, event_id: str = "WH-1", **resource: Any) -> dict[str, Any]:
    return {"id": event_id, "event_type": event_type, "resource_type": "any", "resource": resource}


async def inbox(wallet: Wallet) -> list[str]:
    rows = await wallet.rows("select status from webhooks")
    return [status for (status,) in rows]


async def granted(wallet: Wallet, *kinds: str) -> None:
    async def done() -> bool:
        return await wallet.kinds() == list(kinds)

    async with working(wallet.server.services):
        await until(done)


@pytest.mark.parametrize("fault", ["", "duplicate", "reordered"])
async def test_a_subscription_is_granted_by_webhooks_alone(wallet: Wallet, fault: str) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"], fault=fault)
    await granted(wallet, "grant")
    await until(lambda: delivered(wallet, 3))
    async with working(wallet.server.services):
        await until(lambda: worked(wallet))
    assert await wallet.kinds() == ["grant"]
    [(channel,)] = await wallet.rows("select channel from asset_entries where uid = $1", wallet.uid)
    assert channel == "webhook"


async def delivered(wallet: Wallet, count: int) -> bool:
    return len(await inbox(wallet)) >= count


async def worked(wallet: Wallet) -> bool:
    return set(await inbox(wallet)) == {"done"}


async def test_an_order_is_granted_and_taken_back_by_webhooks(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    await granted(wallet, "grant")
    [(key, _)] = await wallet.entries()
    await wallet.control("refund", payment_id=key.removeprefix("wallet:capture:"))
    await granted(wallet, "grant", "refund")


async def test_a_reversed_payment_is_taken_back(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.capture(order["id"])
    [(key, _)] = await wallet.entries()
    await wallet.control("reverse", payment_id=key.removeprefix("wallet:capture:"))
    await granted(wallet, "grant", "refund")


async def test_the_life_of_a_subscription_follows_webhooks(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    await granted(wallet, "grant")
    await wallet.renew(sub["id"])
    await granted(wallet, "grant", "grant")
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub['id']}/cancel", {"reason": "enough"})
    await granted(wallet, "grant", "grant", "cancel")
    sales = [key.removeprefix("wallet:sale:") for key, kind in await wallet.entries() if kind == "grant"]
    await wallet.control("refund", payment_id=sales[-1])
    await granted(wallet, "grant", "grant", "cancel", "refund")
    statement = "select amount, kind from payment_reversals where payment_id = $1"
    assert await wallet.rows(statement, sales[-1]) == [(999, "refund")]


async def test_an_upgrade_is_completed_by_webhooks_alone(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    new = (await wallet.upgrade(old))[1]["walletpay_sub"]
    await wallet.approve(new["approve_link_href"])

    async def done() -> bool:
        return await wallet.rows("select 1 from wallet_upgrades where state = 'done'") != []

    async with working(wallet.server.services):
        await until(done)
    assert (await wallet.assets())["pro"]["bp_product_id"] == "year"
    assert (await wallet.platform("GET", f"/v1/billing/subscriptions/{old}"))["status"] == "CANCELLED"


async def test_a_payment_that_webhooks_claim_is_granted_only_if_the_platform_has_it(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    forged = event("PAYMENT.SALE.DENIED", billing_agreement_id=sub["id"], state="completed")
    assert await deliver(wallet, forged) == 200
    activated = event("BILLING.SUBSCRIPTION.ACTIVATED", "WH-2", id=sub["id"], status="ACTIVE")
    assert await deliver(wallet, activated) == 200
    async with working(wallet.server.services):
        await until(lambda: worked(wallet))
    assert await wallet.entries() == []


async def test_a_payment_that_the_platform_does_not_list_yet_is_looked_for_again(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    await wallet.rows("delete from webhooks")
    early = event("PAYMENT.SALE.COMPLETED", id="8AA00000000000000", billing_agreement_id=sub_id)
    assert await deliver(wallet, early) == 200

    async def failed() -> bool:
        return "failed" in await inbox(wallet)

    async with working(wallet.server.services):
        await until(failed)
    assert await wallet.kinds() == ["grant"]


@pytest.mark.parametrize(
    "resource",
    [
        event("BILLING.SUBSCRIPTION.ACTIVATED", id="I-NONE"),
        event("BILLING.SUBSCRIPTION.ACTIVATED", id=None),
        event("BILLING.SUBSCRIPTION.ACTIVATED"),
        event("PAYMENT.SALE.PENDING", billing_agreement_id=["I"]),
        event("CHECKOUT.ORDER.APPROVED", id="5O190127TN364715T"),
        event("PAYMENT.CAPTURE.COMPLETED"),
        event("CUSTOMER.DISPUTE.CREATED", id="PP-1"),
        event(""),
    ],
)
async def test_events_about_nothing_of_ours_are_ignored(wallet: Wallet, resource: dict[str, Any]) -> None:
    assert await deliver(wallet, resource) == 200
    async with working(wallet.server.services):
        await until(lambda: worked(wallet))


async def test_an_event_is_stored_once(wallet: Wallet) -> None:
    one = event("BILLING.SUBSCRIPTION.ACTIVATED", id="I-NONE")
    for _ in range(3):
        assert await deliver(wallet, one) == 200
    assert await deliver(wallet, event("CHECKOUT.ORDER.APPROVED", "WH-2"), transmission_id="same") == 200
    assert await deliver(wallet, event("CHECKOUT.ORDER.APPROVED", "WH-3"), transmission_id="same") == 200
    assert len(await inbox(wallet)) == 2


async def test_webhooks_that_the_platform_has_not_sent_to_us_are_refused(wallet: Wallet) -> None:
    one = event("BILLING.SUBSCRIPTION.ACTIVATED", id="I-NONE")
    assert await deliver(wallet, one, webhook="WEBHOOK_ID") == 400
    old = utc_now() - timedelta(days=3, minutes=1)
    assert await deliver(wallet, one, at=old) == 400
    assert await deliver(wallet, b"{") == 400
    assert (await ask(wallet.server, "POST", PATH, data=dumps(one)))[0] == 400
    headers, _ = signed(dumps(one), WEBHOOK, tls_url="https://127.0.0.1:1")
    changed = dumps(one | {"id": "WH-9"})
    assert (await ask(wallet.server, "POST", PATH, data=changed, headers=dict(headers)))[0] == 400
    assert await inbox(wallet) == []


async def test_a_certificate_on_another_host_is_refused(wallet: Wallet) -> None:
    await wallet.configure(certificate_hosts=["api.paypal.com"])
    assert await deliver(wallet, event("CHECKOUT.ORDER.APPROVED")) == 400
    assert await inbox(wallet) == []


async def test_a_webhook_is_verified_offline_where_hosts_are_listed(wallet: Wallet) -> None:
    await wallet.configure(certificate_hosts=["127.0.0.1"], certificate_ca=ROOT)
    headers, body = signed(dumps(event("CHECKOUT.ORDER.APPROVED")), WEBHOOK, tls_url=wallet.sandbox.sandbox.tls_url)
    assert (await ask(wallet.server, "POST", PATH, data=body, headers=dict(headers)))[0] == 200
    paths = [call.asked.get("path", "") for call in wallet.sandbox.bill.since(0) if call.asked]
    assert not any(path.endswith("/verify-webhook-signature") for path in paths)


async def test_a_webhook_that_cannot_be_verified_now_is_to_be_sent_again(wallet: Wallet) -> None:
    await wallet.configure(client_secret=key_of(fault="unavailable"))
    headers, body = signed(dumps(event("CHECKOUT.ORDER.APPROVED")), WEBHOOK, tls_url="https://127.0.0.1:1")
    status, answer = await ask(wallet.server, "POST", PATH, data=body, headers=dict(headers))
    assert (status, answer["error"]["error_type"]) == (503, "backend unavailable")
    assert await inbox(wallet) == []


OFFLINE = {"certificate_hosts": ["127.0.0.1"], "certificate_ca": ROOT}


async def test_genuine_webhooks_are_accepted_while_the_host_of_certificates_is_away(wallet: Wallet) -> None:
    """Nothing listens at the address of their certificate, and PayPal's own interface works."""
    await wallet.configure(**OFFLINE)
    statuses = [await deliver(wallet, event("CHECKOUT.ORDER.APPROVED", f"WH-{number}")) for number in range(20)]
    assert statuses == [200] * 20
    assert len(await inbox(wallet)) == 20


async def test_certificates_are_fetched_although_calls_that_verify_have_failed(wallet: Wallet) -> None:
    await wallet.configure(client_secret=key_of(fault="refuse"))
    for _ in range(10):
        assert await deliver(wallet, event("CHECKOUT.ORDER.APPROVED")) == 503
    await wallet.configure(**OFFLINE)
    one = dumps(event("CHECKOUT.ORDER.APPROVED"))
    headers, body = signed(one, WEBHOOK, tls_url=wallet.sandbox.sandbox.tls_url)
    assert (await ask(wallet.server, "POST", PATH, data=body, headers=dict(headers)))[0] == 200


async def test_a_config_that_cannot_be_used_is_named(wallet: Wallet) -> None:
    one = event("CHECKOUT.ORDER.APPROVED")
    assert await deliver(wallet, one, path="/bp/webhook/walletpay/default/Other") == 404
    assert await deliver(wallet, one, path="/bp/webhook/walletpay/nobody/Default") == 400
    await wallet.configure(webhook_id="")
    assert await deliver(wallet, one) == 422


async def test_an_object_of_another_config_is_not_touched_by_its_webhooks(wallet: Wallet) -> None:
    other = await another(wallet)
    sub = await other.subscribe()
    assert await deliver(wallet, event("BILLING.SUBSCRIPTION.ACTIVATED", id=sub["id"])) == 200
    async with working(wallet.server.services):
        await until(lambda: worked(wallet))
    assert await other.entries() == []


async def test_a_held_webhook_is_replayed_by_an_operator(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"], fault="lost")
    assert await deliver(wallet, event("BILLING.SUBSCRIPTION.ACTIVATED", id=sub["id"])) == 200
    await granted(wallet, "grant")
    [(webhook_id,)] = await wallet.rows("select webhook_id from webhooks limit 1")
    assert (await Operator(wallet.server)("POST", f"webhooks/{webhook_id}/replay")).status == 200
    async with working(wallet.server.services):
        await until(lambda: worked(wallet))
    assert await wallet.kinds() == ["grant"]
