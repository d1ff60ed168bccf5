"""Money that PayPal takes back takes the grant back, by whatever event it is reported, or by none."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from storage.assets.differences import find_differences
from tests.app.callers import work_off
from tests.app.payments.reports import add_sink, brief, reported
from tests.app.payments.wallet.deliveries import PATH, deliver
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet
from tests.calendar.clock import utc_now
from tests.waiting import until

DAY = timedelta(days=1)
WON = ["RESOLVED_SELLER_FAVOUR", "CANCELED_BY_BUYER", "DENIED"]
LOST = ["RESOLVED_BUYER_FAVOUR", "ACCEPTED"]


@pytest.fixture(autouse=True)
async def _connected(wallet: Wallet) -> AsyncIterator[None]:
    """Webhooks reach the server, and in the end the ledger explains all assets."""
    await wallet.control("webhook", id=WEBHOOK, url=wallet.server.url + PATH)
    yield
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []


async def bought(wallet: Wallet) -> str:
    """Buy 100 coins for 1.99 USD, and return the capture."""
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.capture(order["id"])
    await work(wallet)
    return [payment["id"] for payment in (await wallet.books())["payments"]][-1]


async def paid(wallet: Wallet) -> str:
    """Subscribe for 9.99 USD a month, and return the sale."""
    sub_id = await wallet.subscribed()
    sale: str = (await wallet.sync(sub_id))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await work(wallet)
    return sale


BUYS = [pytest.param(bought, id="order"), pytest.param(paid, id="subscription")]


async def happens(wallet: Wallet, action: str, **what: Any) -> None:
    """Let something happen at the platform, and work on its webhooks."""
    await wallet.control(action, **what)
    await work(wallet)


async def work(wallet: Wallet) -> None:
    """Wait for the webhooks that are under way, and work on them."""
    await until(lambda: wallet.sandbox.sandbox.deliveries.is_idle)
    await work_off(wallet.server.services)


async def is_owned(wallet: Wallet) -> bool:
    [asset] = (await wallet.assets()).values()
    return bool(asset["quantity"] > 0 and (asset["type"] == "consumable" or asset["valid_seconds"] > 0))


async def coins(wallet: Wallet) -> int:
    units: int = (await wallet.assets())["coins"]["quantity"]
    return units


async def dispute_of(wallet: Wallet) -> str:
    found: str = (await wallet.books())["disputes"][-1]["id"]
    return found


async def last_event(wallet: Wallet, event_type: str) -> dict[str, Any]:
    """The last event of a type, as the platform lists it."""
    listed = await wallet.platform("GET", f"/v1/notifications/webhooks-events?event_type={event_type}")
    found: dict[str, Any] = listed["events"][0]
    return found


async def test_a_reversal_of_a_capture_has_the_published_shape(wallet: Wallet) -> None:
    """PayPal's example of `PAYMENT.CAPTURE.REVERSED` has a refund, whose link `up` names the capture."""
    capture = await bought(wallet)
    await happens(wallet, "reverse", payment_id=capture)
    event = await last_event(wallet, "PAYMENT.CAPTURE.REVERSED")
    resource = event["resource"]
    links = {link["rel"]: link["href"] for link in resource["links"]}
    assert (event["resource_type"], resource["id"] == capture) == ("refund", False)
    assert links["self"].endswith(f"/v2/payments/refunds/{resource['id']}")
    assert links["up"].endswith(f"/v2/payments/captures/{capture}")
    assert "supplementary_data" not in resource
    assert await wallet.entries() == [(f"wallet:capture:{capture}", "grant"), (f"refund:{capture}", "refund")]
    assert await coins(wallet) == 0


async def test_a_reversal_of_a_sale_has_the_published_shape(wallet: Wallet) -> None:
    """PayPal's example of `PAYMENT.SALE.REVERSED` has a refund that names neither the sale nor the subscription."""
    sale = await paid(wallet)
    await happens(wallet, "reverse", payment_id=sale)
    event = await last_event(wallet, "PAYMENT.SALE.REVERSED")
    resource = event["resource"]
    assert (event["resource_type"], resource["state"]) == ("sale", "completed")
    assert resource["amount"] == {"total": "-9.99", "currency": "USD"}
    assert resource.keys() == {"id", "create_time", "state", "amount", "links"}
    [link] = resource["links"]
    assert link["href"].endswith(f"/v1/payments/refund/{resource['id']}")
    assert await wallet.entries() == [(f"wallet:sale:{sale}", "grant"), (f"refund:{sale}", "refund")]
    pro = (await wallet.assets())["pro"]
    assert (pro["valid_seconds"], pro["is_refund"]) == (0, True)


async def test_a_refund_of_a_sale_has_the_published_shape(wallet: Wallet) -> None:
    """PayPal's example of `PAYMENT.SALE.REFUNDED`: without the subscription, and of a negative amount."""
    sale = await paid(wallet)
    await happens(wallet, "refund", payment_id=sale)
    event = await last_event(wallet, "PAYMENT.SALE.REFUNDED")
    assert event["resource_type"] == "sale"
    assert event["resource"]["amount"]["total"] == "-9.99"
    assert "billing_agreement_id" not in event["resource"]
    assert await wallet.kinds() == ["grant", "refund"]


async def test_a_sale_that_does_not_name_its_subscription_is_read_back(wallet: Wallet) -> None:
    """PayPal's example of `PAYMENT.SALE.COMPLETED` has no `billing_agreement_id`."""
    sub = await wallet.subscribe()
    await work(wallet)
    await wallet.approve(sub["approve_link_href"], fault="lost")
    event = await last_event(wallet, "PAYMENT.SALE.COMPLETED")
    del event["resource"]["billing_agreement_id"]
    assert await deliver(wallet, event) == 200
    await work(wallet)
    assert await wallet.kinds() == ["grant"]


async def test_part_of_an_order_takes_its_part_of_the_units(wallet: Wallet) -> None:
    await add_sink(wallet.server)
    capture = await bought(wallet)
    await happens(wallet, "reverse", payment_id=capture, value="0.50")
    assert await coins(wallet) == 75  # 25.1 %
    await happens(wallet, "reverse", payment_id=capture, value="0.50")
    assert await coins(wallet) == 50  # 50.3 %
    await happens(wallet, "reverse", payment_id=capture)
    assert await coins(wallet) == 0
    assert await wallet.kinds() == ["grant", "refund", "refund", "refund"]
    assert brief(await reported(wallet.server, wallet.uid)) == [
        ("charge", capture, 199),
        ("refund", capture, 50),
        ("refund", capture, 50),
        ("refund", capture, 99),
    ]


async def test_part_of_a_subscription_takes_nothing_until_all_is_gone(wallet: Wallet) -> None:
    sale = await paid(wallet)
    await happens(wallet, "reverse", payment_id=sale, value="9.98")
    assert (await is_owned(wallet), await wallet.kinds()) == (True, ["grant"])
    await happens(wallet, "refund", payment_id=sale)
    assert (await is_owned(wallet), await wallet.kinds()) == (False, ["grant", "refund"])


async def test_what_the_merchant_refunds_in_part_takes_nothing_until_a_dispute_takes_the_rest(
    wallet: Wallet,
) -> None:
    capture = await bought(wallet)
    await happens(wallet, "refund", payment_id=capture, value="0.99")
    assert await coins(wallet) == 100
    await happens(wallet, "dispute", payment_id=capture)
    assert await coins(wallet) == 0
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome="DENIED")
    assert await coins(wallet) == 100


@pytest.mark.parametrize("buy", BUYS)
@pytest.mark.parametrize("reverses", [False, True])
@pytest.mark.parametrize("outcome", WON)
async def test_a_dispute_takes_the_grant_and_gives_it_back_when_it_is_won(
    wallet: Wallet, buy: Any, reverses: bool, outcome: str
) -> None:
    """Events and objects of customer_disputes_v1 of PayPal's OpenAPI."""
    payment = await buy(wallet)
    await happens(wallet, "dispute", payment_id=payment, reverses=reverses)
    assert await is_owned(wallet) is False
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome=outcome)
    assert await is_owned(wallet) is True
    assert await wallet.kinds() == ["grant", "refund", "restore"]


@pytest.mark.parametrize("buy", BUYS)
@pytest.mark.parametrize("outcome", LOST)
async def test_a_dispute_that_is_lost_takes_once(wallet: Wallet, buy: Any, outcome: str) -> None:
    payment = await buy(wallet)
    await happens(wallet, "dispute", payment_id=payment)
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome=outcome)
    assert (await wallet.books())["payments"][-1]["status"] == "REFUNDED"
    assert (await is_owned(wallet), await wallet.kinds()) == (False, ["grant", "refund"])


@pytest.mark.parametrize(
    ("outcome", "kinds"), [("ACCEPTED", ["grant", "refund"]), ("DENIED", ["grant", "refund", "restore"])]
)
async def test_a_dispute_of_a_part_of_an_order_takes_that_part_once(
    wallet: Wallet, outcome: str, kinds: list[str]
) -> None:
    capture = await bought(wallet)
    await happens(wallet, "dispute", payment_id=capture, value="1.00")
    assert await coins(wallet) == 50
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome=outcome)
    assert (await coins(wallet), await wallet.kinds()) == (50 if outcome == "ACCEPTED" else 100, kinds)


@pytest.mark.parametrize("outcome", ["RESOLVED_WITH_PAYOUT", "NONE"])
async def test_after_a_dispute_without_a_decision_the_payment_decides(wallet: Wallet, outcome: str) -> None:
    for reverses in (False, True):
        capture = await bought(wallet)
        await happens(wallet, "dispute", payment_id=capture, reverses=reverses)
        assert await coins(wallet) == (0 if not reverses else 100)
        await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome=outcome)
        assert await coins(wallet) == 100


async def test_a_dispute_that_is_opened_again_takes_again(wallet: Wallet) -> None:
    await happens(wallet, "dispute", payment_id=await bought(wallet))
    dispute = await dispute_of(wallet)
    for outcome in ("DENIED", None, "CANCELED_BY_BUYER", None):
        await happens(wallet, "resolve_dispute", dispute_id=dispute, outcome=outcome)
        assert await coins(wallet) == (0 if outcome is None else 100)
    assert await wallet.kinds() == ["grant", "refund", "restore", "refund", "restore", "refund"]


async def test_a_payment_that_is_refunded_during_its_dispute_stays_refunded(wallet: Wallet) -> None:
    capture = await bought(wallet)
    await happens(wallet, "dispute", payment_id=capture)
    await happens(wallet, "refund", payment_id=capture)
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome="CANCELED_BY_BUYER")
    assert (await coins(wallet), await wallet.kinds()) == (0, ["grant", "refund"])


async def hour_later(wallet: Wallet) -> None:
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(hours=1))


async def decided(wallet: Wallet, payment: str, outcome: str, **what: Any) -> None:
    """Open a dispute, and decide it an hour later. Another hour passes."""
    await happens(wallet, "dispute", payment_id=payment, **what)
    await hour_later(wallet)
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome=outcome)
    await hour_later(wallet)


@pytest.mark.parametrize("buy", BUYS)
@pytest.mark.parametrize("reverses", [False, True])
async def test_a_chargeback_after_a_won_dispute_takes_all(wallet: Wallet, buy: Any, reverses: bool) -> None:
    payment = await buy(wallet)
    await decided(wallet, payment, "DENIED", reverses=reverses)
    assert await is_owned(wallet) is True
    await happens(wallet, "reverse", payment_id=payment)
    assert await is_owned(wallet) is False


@pytest.mark.parametrize("buy", BUYS)
async def test_a_second_dispute_takes_after_the_first_was_withdrawn(wallet: Wallet, buy: Any) -> None:
    payment = await buy(wallet)
    await decided(wallet, payment, "CANCELED_BY_BUYER")
    await decided(wallet, payment, "NONE", reverses=True)
    assert await is_owned(wallet) is False


async def test_a_won_dispute_of_a_part_does_not_lessen_a_later_chargeback(wallet: Wallet) -> None:
    capture = await bought(wallet)
    await decided(wallet, capture, "DENIED", value="0.60", reverses=True)
    assert await coins(wallet) == 100
    await happens(wallet, "reverse", payment_id=capture, value="0.80")
    assert await coins(wallet) == 60


async def test_a_won_dispute_does_not_give_an_earlier_chargeback_back(wallet: Wallet) -> None:
    capture = await bought(wallet)
    await happens(wallet, "reverse", payment_id=capture, value="0.60")
    assert await coins(wallet) == 70
    await hour_later(wallet)
    await happens(wallet, "dispute", payment_id=capture, reverses=True)
    assert await coins(wallet) == 0
    await hour_later(wallet)
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome="DENIED")
    assert await coins(wallet) == 70


@pytest.mark.parametrize("buy", BUYS)
async def test_a_dispute_that_is_lost_in_part_takes_that_part(wallet: Wallet, buy: Any) -> None:
    """`dispute_outcome.amount_refunded` of customer_disputes_v1: what the payer gets back."""
    payment = await buy(wallet)
    await happens(wallet, "dispute", payment_id=payment)
    assert await is_owned(wallet) is False
    lost = {"outcome": "RESOLVED_BUYER_FAVOUR", "value": "0.50"}
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), **lost)
    assets = await wallet.assets()
    assert await is_owned(wallet) is True
    assert "coins" not in assets or assets["coins"]["quantity"] == 75
    assert await wallet.kinds() == ["grant", "refund", "restore"]
    dispute = await wallet.platform("GET", f"/v1/customer/disputes/{await dispute_of(wallet)}")
    assert dispute["dispute_outcome"]["amount_refunded"] == {"currency_code": "USD", "value": "0.50"}


@pytest.mark.parametrize("fault", ["duplicate", "reordered"])
async def test_disputes_and_reversals_may_be_reported_in_any_order(wallet: Wallet, fault: str) -> None:
    capture = await bought(wallet)
    await wallet.control("deliveries", fault=fault)
    await wallet.control("dispute", payment_id=capture, reverses=True)
    await wallet.control("resolve_dispute", dispute_id=await dispute_of(wallet), outcome="DENIED")
    await wallet.control("dispute", payment_id=capture, value="1.00")
    await work(wallet)
    assert await coins(wallet) == 50


async def days_later(wallet: Wallet, days: int = 1) -> None:
    now = wallet.server.services.clock.now("default")
    await wallet.travel(now + days * DAY + timedelta(minutes=1))
    await wallet.reconcile()


@pytest.mark.parametrize("buy", BUYS)
@pytest.mark.parametrize("action", ["refund", "reverse", "dispute"])
async def test_what_no_event_reports_is_found_the_next_day(wallet: Wallet, buy: Any, action: str) -> None:
    payment = await buy(wallet)
    await wallet.reconcile()
    await wallet.control("deliveries", fault="lost")
    at = wallet.server.services.clock.now("default")
    await happens(wallet, action, payment_id=payment)
    assert await wallet.kinds() == ["grant"]
    await days_later(wallet)
    assert await wallet.kinds() == ["grant", "refund"]
    [asset] = (await wallet.assets()).values()
    assert timedelta(seconds=-2) < datetime.fromisoformat(asset["refund_time"]) - at < timedelta(minutes=1)
    if action == "dispute":
        await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome="DENIED")
        await days_later(wallet)
        assert await wallet.kinds() == ["grant", "refund", "restore"]


@pytest.mark.parametrize("buy", BUYS)
async def test_a_chargeback_that_no_event_reports_is_given_back_once_it_is_won(wallet: Wallet, buy: Any) -> None:
    payment = await buy(wallet)
    await wallet.control("deliveries", fault="lost")
    await happens(wallet, "dispute", payment_id=payment, reverses=True)
    await days_later(wallet)
    assert await is_owned(wallet) is False
    await happens(wallet, "resolve_dispute", dispute_id=await dispute_of(wallet), outcome="DENIED")
    await days_later(wallet)
    assert await is_owned(wallet) is True


async def test_missed_events_of_disputes_are_found(wallet: Wallet) -> None:
    await wallet.control("deliveries", fault="lost")
    await wallet.control("dispute", payment_id=await bought(wallet))
    await wallet.travel(utc_now() + timedelta(minutes=3))
    await wallet.find_missed_events()
    await work(wallet)
    assert "CUSTOMER.DISPUTE.CREATED" in {found["detail"] for found in await wallet.mismatches("missed_event")}
    assert await coins(wallet) == 0


async def test_a_paid_order_is_read_once_a_day_for_180_days(wallet: Wallet) -> None:
    await bought(wallet)
    order_id = (await wallet.books())["payments"][-1]["order_id"]

    def reads() -> int:
        made = [call.asked for call in wallet.sandbox.bill.since(0) if call.asked]
        return sum(asked.get("path", "").endswith(f"/orders/{order_id}") for asked in made)

    await wallet.reconcile()
    before = reads()
    for hours in (1, 10, 25, 30):
        await wallet.travel(utc_now() + timedelta(hours=hours))
        await wallet.reconcile()
    assert reads() == before + 1
    for days in (181, 183):
        await wallet.travel(utc_now() + timedelta(days=days))
        await wallet.reconcile()
    assert reads() == before + 2
    assert await wallet.rows("select check_at from wallet_orders where uid = $1", wallet.uid) == [(None,)]
