"""Amounts of money in the sandbox's PayPal: how it reads and writes them."""

from typing import Any

from streams.wire.money import Money
from vendors.sandbox.payments.paypal.wire import refusal

_CURRENCIES = frozenset(
    [
        "AUD",
        "BRL",
        "CAD",
        "CNY",
        "CZK",
        "DKK",
        "EUR",
        "HKD",
        "HUF",
        "ILS",
        "JPY",
        "MYR",
        "MXN",
        "TWD",
        "NZD",
        "NOK",
        "PHP",
        "PLN",
        "GBP",
        "SGD",
        "SEK",
        "CHF",
        "THB",
        "USD",
    ]
)
_WHOLE = frozenset({"HUF", "JPY", "TWD"})


def read_amount(value: Any, at: str, *, code: str = "currency_code", number: str = "value") -> Money:
    """Return an amount of a request. `code` and `number` are the names of its fields."""
    if not isinstance(value, dict) or not isinstance(value.get(number), str):
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at=f"{at}/{number}")
    currency, text = value.get(code), value[number]
    if currency not in _CURRENCIES:
        raise refusal(422, "INVALID_CURRENCY_CODE", "Currency code is invalid.", at=f"{at}/{code}")
    whole, point, decimals = text.partition(".")
    if currency in _WHOLE and point:
        raise refusal(422, "DECIMALS_NOT_SUPPORTED", "Currency does not support decimals.", at=f"{at}/{number}")
    if currency not in _WHOLE and len(decimals) != 2:
        raise refusal(422, "DECIMAL_PRECISION", "The value must have two decimals.", at=f"{at}/{number}")
    if not (whole.isascii() and whole.isdecimal() and (decimals or "0").isdecimal()) or len(whole) > 10:
        raise refusal(400, "INVALID_PARAMETER_SYNTAX", "The value is not a number.", at=f"{at}/{number}")
    amount = Money.parse(text, currency)
    if amount.amount == 0:
        raise refusal(422, "CANNOT_BE_ZERO_OR_NEGATIVE", "Must be greater than zero.", at=f"{at}/{number}")
    return amount


def value_of(amount: Money) -> str:
    return amount.decimal.partition(".")[0] if amount.currency in _WHOLE else amount.decimal


def written(amount: Money) -> dict[str, str]:
    return {"currency_code": amount.currency, "value": value_of(amount)}


def written_total(amount: Money) -> dict[str, str]:
    """Return an amount of a sale."""
    return {"currency": amount.currency, "total": value_of(amount)}


def written_payout(amount: Money) -> dict[str, str]:
    return {"currency": amount.currency, "value": value_of(amount)}


def fee_of(amount: Money) -> Money:
    """Return the fee of the sandbox for a payment."""
    return amount.part(3, 100) if amount.currency not in _WHOLE else Money(0, amount.currency)
