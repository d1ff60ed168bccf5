"""Amounts in PayPal's forms: what is written is read again, and no amount is changed on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from streams.wire.model import Model
from streams.wire.money import EXPONENTS, Money
from vendors.payments.paypal.fields import Amount, amount_body, decimal_of, payout_body, rounded, total_body
from vendors.payments.paypal.subscriptions import Subscription

PAYPAL = sorted(code for code, exponent in EXPONENTS.items() if exponent == 2 or code == "JPY")
AMOUNTS = st.builds(Money, st.integers(-(10**12), 10**12), st.sampled_from(PAYPAL))


class Read(Model):
    amount: Amount


@given(AMOUNTS)
def test_an_amount_that_can_be_paid_survives_each_form(amount: Money):
    payable = rounded(amount)

    for body in (amount_body(payable), total_body(payable), payout_body(payable)):
        assert Read.model_validate({"amount": body}).amount == payable


@given(AMOUNTS)
def test_rounding_moves_an_amount_by_at_most_half_of_what_can_be_paid(amount: Money):
    off = rounded(amount) - amount

    unit = 100 if amount.currency in {"HUF", "TWD"} else 1
    assert abs(off.amount) * 2 <= unit
    assert rounded(amount).amount % unit == 0
    assert rounded(rounded(amount)) == rounded(amount)
    assert rounded(-amount) == -rounded(amount)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Money(199, "USD"), "1.99"),
        (Money(100, "USD"), "1.00"),
        (Money(5, "EUR"), "0.05"),
        (Money(500, "JPY"), "500"),
        (Money(50_000, "HUF"), "500"),
        (Money(100, "TWD"), "1"),
    ],
)
def test_amounts_have_exactly_the_decimals_of_their_currency(amount: Money, text: str):
    assert decimal_of(amount) == text


@pytest.mark.parametrize("amount", [Money(50, "HUF"), Money(1, "TWD"), Money(1, "BHD")])
def test_an_amount_between_two_that_can_be_paid_is_refused(amount: Money):
    with pytest.raises(ValueError, match="more decimals"):
        decimal_of(amount)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ({"currency_code": "JPY", "value": "500.00"}, Money(500, "JPY")),
        ({"currency_code": "USD", "value": "5"}, Money(500, "USD")),
        ({"currency_code": "USD", "value": "5.5"}, Money(550, "USD")),
        ({"currency_code": "USD", "value": "5.5000"}, Money(550, "USD")),
        ({"currency": "USD", "total": "5.50", "details": {}}, Money(550, "USD")),
        ({"currency_code": "USD", "value": "-5.50"}, Money(-550, "USD")),
    ],
)
def test_other_notations_of_the_same_amount_are_read(value: dict[str, object], amount: Money):
    assert Read.model_validate({"amount": value}).amount == amount


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(),
        st.fixed_dictionaries(
            {"currency_code": st.sampled_from(["USD", "JPY", "XXX", "usd", ""]), "value": st.text(max_size=8)}
        ),
    )
)
def test_anything_else_is_a_malformed_response(value: object):
    try:
        read = Read.model_validate({"amount": value}).amount
    except ValidationError:
        return
    assert isinstance(value, dict)
    number = float(value["value"])
    assert abs(read.amount) == round(abs(number) * (1 if read.currency == "JPY" else 100))


@pytest.mark.parametrize(
    "text", ["1.999", "1e3", "NaN", "1,00", " 1.00", "1.00 ", "", "\u0663.\u0660\u0660", "1.005"]
)
def test_numbers_that_are_no_exact_amount_are_refused(text: str):
    with pytest.raises(ValidationError):
        Read.model_validate({"amount": {"currency_code": "USD", "value": text}})


def test_a_field_that_is_null_counts_as_missing():
    value = {
        "id": "I-1",
        "status": "ACTIVE",
        "custom_id": None,
        "billing_info": {"last_payment": None},
        "links": None,
    }

    found = Subscription.model_validate(value)

    assert (found.custom_id, found.last_payment, found.approve_url) == ("", None, "")
    with pytest.raises(ValidationError):
        Subscription.model_validate({**value, "status": None})
