"""What a platform says is compared with a draft, also if it says less or more than a draft can."""

import pytest

from app.trials.terms import ELSEWHERE, Terms, differences, period_of
from storage.configs.kinds.products import Product

PRODUCT = {"type": "subscription", "asset": "pro", "period": "P1M", "price": {"amount": 999, "currency": "USD"}}


def found(terms: Terms, **changes: object) -> list[str]:
    product = Product.model_validate({**PRODUCT, **changes})
    return list(differences(product, terms, [ELSEWHERE], noun="plan"))


def test_a_price_that_is_not_fixed_has_no_currency_for_its_trial() -> None:
    terms = Terms(period="P1M", trial="P2W", trial_amount=5)
    assert found(terms, trial={"period": "P14D", "amount": 100}) == ["The plan has no fixed amount."]


@pytest.mark.parametrize("period", ["", "P99999D", "P1M2W"])
def test_a_period_that_a_draft_cannot_have_differs(period: str) -> None:
    [said] = found(Terms(amount=999, currency="USD", period=period))
    assert said.startswith("The plan is billed every ")


def test_units_of_platforms_become_periods() -> None:
    assert [period_of("MONTH", 3), period_of("week", 2), period_of("fortnight", 1)] == ["P3M", "P2W", ""]


def test_a_draft_without_a_price_has_nothing_to_compare() -> None:
    assert found(Terms(amount=1, currency="JPY", period="P30D"), price=None, period="P30D") == []
