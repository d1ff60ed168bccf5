"""Money is exact: decimals are read and written without loss, and parts add up to the amount."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.money import EXPONENTS, Money

CURRENCIES = st.sampled_from(sorted(EXPONENTS))
AMOUNTS = st.integers(-(10**15), 10**15)
MONEY = st.builds(Money, AMOUNTS, CURRENCIES)


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("12.30", "USD", 1230),
        ("12.3", "EUR", 1230),
        ("0.05", "EUR", 5),
        ("-0.05", "EUR", -5),
        ("500", "JPY", 500),
        ("1.234", "KWD", 1234),
        ("1.5", "CLF", 15_000),
        ("1.5", "XAD", 150),
        ("1.5", "XCG", 150),
        ("1.5", "ZWG", 150),
        ("9223372036854775807", "JPY", 2**63 - 1),
    ],
)
def test_decimal_is_read_by_the_exponent_of_its_currency(text: str, currency: str, amount: int) -> None:
    assert Money.parse(text, currency) == Money(amount, currency)


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("12.345", "USD"),
        ("1.0", "JPY"),
        ("1.", "USD"),
        (".5", "USD"),
        ("+1", "USD"),
        (" 1", "USD"),
        ("1e2", "USD"),
        ("1,000.00", "USD"),
        ("\u0661", "USD"),
        ("NaN", "USD"),
        ("", "USD"),
        ("9223372036854775808", "JPY"),
        ("1", "XAU"),
        ("1", "XDR"),
        ("1", "XTS"),
        ("1", "XXX"),
        ("1", "BGN"),
        ("1", "usd"),
        ("1", "DEM"),
    ],
)
def test_other_texts_and_unknown_currencies_are_refused(text: str, currency: str) -> None:
    with pytest.raises(ValueError, match=r"must be|too large"):
        Money.parse(text, currency)


@pytest.mark.parametrize("amount", [1.0, Decimal(1), True, "1"])
def test_amount_is_an_integer(amount: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        Money(amount, "USD")


@given(MONEY)
def test_decimal_text_and_amount_are_the_same_number(money: Money) -> None:
    assert Money.parse(money.decimal, money.currency) == money
    assert Decimal(money.decimal) == Decimal(money.amount).scaleb(-EXPONENTS[money.currency])


@given(MONEY, AMOUNTS)
def test_sums_differences_and_order_are_those_of_the_amounts(money: Money, amount: int) -> None:
    other = Money(amount, money.currency)
    assert (money + other).amount == money.amount + amount
    assert money + other - other == money
    assert (money < other, money <= other) == (money.amount < amount, money.amount <= amount)


@pytest.mark.parametrize("combine", [Money.__add__, Money.__sub__, Money.__lt__, Money.__le__])
def test_currencies_are_not_mixed(combine: Any) -> None:
    with pytest.raises(ValueError, match="EUR cannot be combined with USD"):
        combine(Money(1, "USD"), Money(1, "EUR"))


@given(MONEY, st.lists(st.integers(0, 10**6), min_size=1, max_size=20).filter(any))
def test_parts_of_a_split_add_up_and_are_within_one_unit_of_their_share(money: Money, weights: list[int]) -> None:
    parts = money.split(weights)
    assert sum(part.amount for part in parts) == money.amount
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part.amount * sum(weights) - money.amount * weight) < sum(weights)


@pytest.mark.parametrize(
    ("amount", "weights", "parts"),
    [(100, [1, 1, 1], [34, 33, 33]), (-100, [1, 1, 1], [-34, -33, -33]), (5, [3, 7], [2, 3]), (1, [0, 1], [0, 1])],
)
def test_units_that_are_left_go_to_the_largest_remainders(
    amount: int, weights: list[int], parts: list[int]
) -> None:
    assert [part.amount for part in Money(amount, "EUR").split(weights)] == parts


@pytest.mark.parametrize("weights", [[], [0, 0], [2, -1]])
def test_weights_that_are_negative_or_whose_sum_is_zero_are_refused(weights: list[int]) -> None:
    with pytest.raises(ValueError, match="weights"):
        Money(1, "EUR").split(weights)


@given(AMOUNTS, st.integers(1, 10**8), st.data())
def test_parts_are_rounded_half_away_from_zero(amount: int, whole: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, whole))
    exact = Decimal(amount * share) / whole
    expected = exact.quantize(Decimal(1), rounding=ROUND_HALF_UP)
    assert Money(amount, "EUR").part(share, whole).amount == expected


@pytest.mark.parametrize(("share", "whole"), [(2, 1), (-1, 1), (0, 0)])
def test_a_share_that_is_not_part_of_the_whole_is_refused(share: int, whole: int) -> None:
    with pytest.raises(ValueError, match="share"):
        Money(1, "EUR").part(share, whole)
