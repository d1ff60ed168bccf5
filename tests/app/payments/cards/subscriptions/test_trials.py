"""Free trials of subscriptions with a card."""

from typing import Any

import pytest

from streams.wire.codec import from_rfc3339
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import cancelled, later, move_to, read, subscribed
from tests.calendar.clock import epoch_s


@pytest.fixture
async def trial(shop: Shop) -> str:
    """A product with a free trial."""
    value = {
        "type": "subscription", "asset": "plus", "period": "P1M", "quantity": 30, "trial": {"period": "P7D"},
        "cardpay": {"price_id": "price_pro_month"},
    }  # fmt: skip
    await shop.put("products", "plus", value)
    return "plus"


async def test_a_trial_is_free_and_once(shop: Shop, buyer: Buyer, trial: str) -> None:
    answer = await subscribed(shop, buyer, product_id=trial)
    subscription, [plus] = answer["cardpay_sub"], answer["assets"]
    assert (subscription["status"], plus["is_trial_period"], plus["origin"]) == ("trialing", True, "trial")
    assert subscription["current_period_end_ts"] == pytest.approx(epoch_s() + 7 * 86400, abs=60)
    assert plus["valid_seconds"] == pytest.approx(8 * 86400, abs=60)  # A day longer, because it renews.
    buyer = await later(shop, buyer, days=8)
    [plus] = (await read(shop, buyer, subscription["id"]))["assets"]
    assert (plus["is_trial_period"], plus["origin"], plus["quantity"]) == (False, "renewal", 30)
    await cancelled(shop, buyer, subscription["id"])
    buyer = await later(shop, buyer, days=40)
    await read(shop, buyer, subscription["id"])
    again = (await subscribed(shop, buyer, product_id=trial))["cardpay_sub"]
    assert (again["status"], again["id"] != subscription["id"]) == ("active", True)


@pytest.mark.parametrize(
    ("begins", "trial_ends", "ends"),
    [
        ("2027-01-31T12:00:00Z", "2027-02-28T12:00:00Z", "2027-03-28T12:00:00Z"),
        ("2028-01-31T12:00:00Z", "2028-02-29T12:00:00Z", "2028-03-29T12:00:00Z"),
    ],
)
async def test_a_trial_of_a_month_ends_on_the_last_day_of_a_shorter_month(
    shop: Shop, buyer: Buyer, begins: str, trial_ends: str, ends: str
) -> None:
    value = {
        "type": "subscription", "asset": "plus", "period": "P1M", "trial": {"period": "P1M"},
        "cardpay": {"price_id": "price_pro_month"},
    }  # fmt: skip
    await shop.put("products", "monthly_trial", value)
    buyer = await move_to(shop, buyer, begins)
    answer = await subscribed(shop, buyer, product_id="monthly_trial")
    subscription, [plus] = answer["cardpay_sub"], answer["assets"]
    assert (subscription["status"], plus["is_trial_period"]) == ("trialing", True)
    assert ended_at(answer) == pytest.approx([from_rfc3339(trial_ends).timestamp()] * 2, abs=60)
    buyer = await later(shop, buyer, days=30)
    answer = await read(shop, buyer, subscription["id"])
    assert answer["assets"][0]["origin"] == "renewal"
    assert ended_at(answer) == pytest.approx([from_rfc3339(ends).timestamp()] * 2, abs=60)


def ended_at(answer: dict[str, Any]) -> list[float]:
    """Return when the period ends by the platform, and when the asset ends without the tolerance of a day."""
    [asset] = answer["assets"]
    return [answer["cardpay_sub"]["current_period_end_ts"], from_rfc3339(asset["expire_time"]).timestamp() - 86400]
