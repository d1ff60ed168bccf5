"""Fields that many of PayPal's objects have: amounts, links and times."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, InstanceOf

from streams.wire.money import Money, exponent_of
from vendors.objects import Readable, VendorObject

_WITHOUT_DECIMALS = frozenset({"HUF", "JPY", "TWD"})
"""Currencies whose amounts PayPal accepts only without decimals. All others have two."""
_DECIMALS = 2


def decimals_of(currency: str) -> int:
    return 0 if currency in _WITHOUT_DECIMALS else _DECIMALS


def rounded(amount: Money) -> Money:
    """Return the nearest amount that PayPal can pay. It pays no cents of HUF and TWD. Halves go away from zero."""
    return rounded_part(amount, 1, 1)


def rounded_part(amount: Money, share: int, whole: int) -> Money:
    """Return `share` / `whole` of an amount, rounded once to an amount that PayPal can pay, half away from zero."""
    unit = 10 ** max(0, exponent_of(amount.currency) - decimals_of(amount.currency))
    units = (2 * abs(amount.amount) * share + whole * unit) // (2 * whole * unit) * unit
    return Money(units if amount.amount >= 0 else -units, amount.currency)


def decimal_of(amount: Money) -> str:
    """Return an amount as PayPal expects it. Raises `ValueError` if it has more decimals than PayPal allows."""
    if rounded(amount) != amount:
        raise ValueError(f"{amount} has more decimals than PayPal accepts")
    whole, _, decimals = amount.decimal.partition(".")
    places = decimals_of(amount.currency)
    return f"{whole}.{decimals[:places]:0<{places}}" if places else whole


def amount_body(amount: Money) -> dict[str, str]:
    """Return an amount for calls to version 2, and to subscriptions."""
    return {"currency_code": amount.currency, "value": decimal_of(amount)}


def total_body(amount: Money) -> dict[str, str]:
    """Return an amount for calls to sales."""
    return {"currency": amount.currency, "total": decimal_of(amount)}


def payout_body(amount: Money) -> dict[str, str]:
    """Return an amount for payouts."""
    return {"currency": amount.currency, "value": decimal_of(amount)}


def _money(value: Any) -> Money:
    match value:
        case Money():
            return value
        case {"currency_code": str(currency), "value": str(text)}:
            return Money.parse(_trimmed(text, currency), currency)
        case {"currency": str(currency), "total": str(text)} | {"currency": str(currency), "value": str(text)}:
            return Money.parse(_trimmed(text, currency), currency)
    raise ValueError("must be an amount of money")


def _trimmed(text: str, currency: str) -> str:
    """Return a decimal without the zeros that the currency has no places for, as in `100.00` of JPY."""
    whole, point, decimals = text.partition(".")
    places = exponent_of(currency)
    if not point or decimals[places:].strip("0"):
        return text
    return f"{whole}.{decimals[:places]}" if decimals[:places] else whole


Amount = Annotated[InstanceOf[Money], BeforeValidator(_money)]
"""An amount in any of the forms in which PayPal sends it."""


class PayPalObject(VendorObject):
    """A part of PayPal's responses and events."""


class Link(PayPalObject):
    href: str
    rel: str


Links = list[Readable[Link]]


def linked(links: Sequence[Link], *relations: str) -> str:
    """Return the address of the first link with one of the relations, or an empty string."""
    return next((link.href for link in links if link.rel in relations), "")
