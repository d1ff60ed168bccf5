"""What a payer pays, as a draft says and as a payment platform says, and in what the two differ."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from storage.configs.kinds.products import Product
from streams.wire.model import Model
from streams.wire.money import Money
from streams.wire.period import Period

_UNITS = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_LETTERS = {"year": "Y", "month": "M", "week": "W", "day": "D"}
ELSEWHERE = ""
"""Stands for the countries that are not named."""


class Terms(Model):
    amount: int | None = None
    """In minor units of the currency. Absent: there is no fixed price."""
    currency: str = ""
    period: str = ""
    """What a payment of a subscription is for, such as `P1M`."""
    trial: str = ""
    """How long the trial lasts, such as `P7D`. Empty: there is none."""
    trial_amount: int = 0
    """The price of the trial, in minor units."""


class PriceTrial(Model):
    platform: Literal["cardpay", "walletpay"]
    config: str
    """The config of the platform's account."""
    object: Literal["price", "plan", "payment", "order"]
    """What the trial has read, or made: a price of the card platform or a plan of the wallet platform, which
    subscriptions have, or a payment with a card or an order of the wallet."""
    id: str = ""
    """The platform's id of it."""
    countries: list[str] = Field(default_factory=list)
    """Where it applies. Empty: in all other countries."""
    draft: Terms
    found: Terms | None = None
    """What the platform says. Absent if it has no such object, or has not answered."""
    active: bool | None = None
    """Whether payers can subscribe to it."""
    status: str = ""
    """The platform's state of a payment or an order: `canceled`, or `CREATED`."""
    differences: list[str] = Field(default_factory=list)
    """What to correct, in sentences."""
    error: str | None = None
    """Why the platform refuses it, or has failed."""
    elapsed_ms: int = 0


def terms_of(product: Product, country: str = ELSEWHERE) -> Terms:
    """Return what a draft says about a country."""
    price = None if product.price is None else product.price.in_country(country)
    trial = product.trial
    return Terms(
        amount=None if price is None else price.amount,
        currency="" if price is None else price.currency,
        period=product.period or "",
        trial="" if trial is None else trial.period,
        trial_amount=0 if trial is None else trial.amount,
    )


def period_of(unit: str, count: int) -> str:
    """Return `count` units, such as `month`, as an ISO 8601 period. Empty if the unit is unknown."""
    letter = _LETTERS.get(unit.lower())
    return "" if letter is None else f"P{count}{letter}"


def differences(product: Product, found: Terms, countries: Sequence[str], *, noun: str) -> Iterator[str]:
    """Yield a sentence for each difference between a draft and a `noun` of the platform, in these countries."""
    yield from _prices(product, found, countries, noun=noun)
    if not _same(found.period, product.period or ""):
        billed, said = (_spoken(period).removeprefix("1 ") for period in (found.period, product.period))
        yield f"The {noun} is billed every {billed}, but the draft says every {said}."
    yield from _trials(terms_of(product), found, noun=noun)


def _prices(product: Product, found: Terms, countries: Sequence[str], *, noun: str) -> Iterator[str]:
    if found.amount is None:
        yield f"The {noun} has no fixed amount."
        return
    if product.price is None:
        return
    paid, said = Money(found.amount, found.currency), dict[Money, list[str]]()
    for country in countries:
        said.setdefault(product.price.in_country(country), []).append(country)
    for money, where in said.items():
        if money != paid:
            place = "" if ELSEWHERE in where else f"In {', '.join(where)}: "
            yield f"{place}A payer pays {paid}, but the draft says {money}."


def _trials(draft: Terms, found: Terms, *, noun: str) -> Iterator[str]:
    if draft.trial and not found.trial:
        yield f"The draft has a trial of {_spoken(draft.trial)}, but the {noun} has none."
    elif found.trial and not draft.trial:
        yield f"The {noun} has a trial of {_spoken(found.trial)}, but the draft has none."
    elif not _same(found.trial, draft.trial):
        yield f"The trial lasts {_spoken(found.trial)}, but the draft says {_spoken(draft.trial)}."
    is_priced = found.amount is not None  # Otherwise, its currency is unknown.
    if draft.trial and found.trial and is_priced and found.trial_amount != draft.trial_amount:
        paid, said = (Money(terms.trial_amount, found.currency) for terms in (found, draft))
        yield f"The trial costs {paid}, but the draft says {said}."


def _same(one: str, other: str) -> bool:
    """Return whether two periods are equally long, such as `P1Y` and `P12M`."""
    try:
        return one == other or Period.parse(one) == Period.parse(other)
    except ValueError:
        return False


def _spoken(period: str | None) -> str:
    """Return a period in words, such as `7 days`."""
    parts = [(int(count), _UNITS[unit]) for count, unit in re.findall(r"(\d+)([YMWD])", period or "")]
    return " and ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts) or "unknown time"
