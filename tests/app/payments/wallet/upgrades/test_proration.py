"""What is given back of a payment is exact, and never more than was paid."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from app.payments.wallet.proration import part_of_unused_units, refund_due, unused_part
from streams.wire.money import Money

START = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
MONTH = 28 * 86_400
amounts = st.integers(0, 10**12)
seconds = st.integers(1, 10 * 366 * 86_400)
microseconds = st.integers(0, 10**16)


def at(after_s: float) -> datetime:
    return START + timedelta(seconds=after_s)


def unused(amount: int, *, period_s: int, after_s: float, currency: str = "USD") -> int:
    paid = Money(amount, currency)
    return unused_part(paid, start=START, end=at(period_s), at=at(after_s)).amount


@pytest.mark.parametrize(
    ("amount", "after_s", "expected"),
    [
        (999, 0, 999),
        (999, MONTH, 0),
        (999, MONTH // 2, 500),  # 499.5
        (999, MONTH * 2 // 3, 333),
        (1, MONTH // 2, 1),  # 0.5
        (1, MONTH // 2 + 1, 0),
        (999, 2 * MONTH, 0),
        (999, -1, 999),
        (999, MONTH - 0.5, 0),
        (0, 0, 0),
    ],
)
def test_the_part_of_a_month_that_is_left_is_rounded_half_up(amount: int, after_s: float, expected: int) -> None:
    assert unused(amount, period_s=MONTH, after_s=after_s) == expected


def test_a_currency_without_decimals_is_refunded_in_whole_units() -> None:
    assert unused(1001, period_s=MONTH, after_s=MONTH // 2, currency="JPY") == 501
    assert unused(100_000, period_s=3, after_s=2, currency="HUF") == 33_300


def test_a_period_without_length_is_used() -> None:
    assert unused(999, period_s=0, after_s=0) == 0


@pytest.mark.parametrize(("currency", "unit"), [("USD", 1), ("JPY", 1), ("HUF", 100), ("TWD", 100)])
@given(amounts, seconds, microseconds)
@example(100, 100_000, 50_504_000_000)
def test_the_part_is_the_nearest_amount_to_the_exact_share(
    currency: str, unit: int, units: int, period_s: int, after_us: int
) -> None:
    """`unit`: the least amount that the platform pays."""
    amount, left_s = units * unit, max(period_s - -(-after_us // 10**6), 0)
    exact = Fraction(amount * left_s, period_s)
    assert unused(amount, period_s=period_s, after_s=0, currency=currency) == amount
    moment = START + timedelta(microseconds=after_us)
    part = unused_part(Money(amount, currency), start=START, end=at(period_s), at=moment).amount
    assert part % unit == 0
    assert Fraction(-unit, 2) < part - exact <= Fraction(unit, 2)


@given(amounts, amounts, seconds, st.integers(-(10**9), 10**9))
def test_no_more_is_given_back_than_is_left_of_the_payment(
    amount: int, refunded: int, period_s: int, after_s: int
) -> None:
    paid, given_back = Money(amount, "USD"), Money(refunded, "USD")
    due = refund_due(paid, refunded=given_back, start=START, end=at(period_s), at=at(after_s)).amount
    assert 0 <= due <= max(amount - refunded, 0)
    assert due == min(unused(amount, period_s=period_s, after_s=after_s), max(amount - refunded, 0))


@pytest.mark.parametrize(
    ("granted", "used", "expected"),
    [(30, 0, 999), (30, 15, 500), (30, 30, 0), (30, 31, 0), (3, 1, 666), (0, 0, 999), (0, 5, 999)],
)
def test_the_part_of_units_that_are_left_is_rounded_half_up(granted: int, used: int, expected: int) -> None:
    assert part_of_unused_units(Money(999, "USD"), granted=granted, used=used).amount == expected


@given(amounts, st.integers(1, 10**9), st.integers(0, 10**9), seconds, seconds)
def test_the_smaller_of_unused_time_and_unused_units_is_given_back(
    amount: int, granted: int, used: int, period_s: int, after_s: int
) -> None:
    paid, end = Money(amount, "USD"), at(period_s)
    due = refund_due(
        paid, refunded=Money(0, "USD"), start=START, end=end, at=at(after_s), granted=granted, used=used
    ).amount
    left = Fraction(max(granted - used, 0), granted)
    exact = amount * min(left, Fraction(max(period_s - after_s, 0), period_s))
    assert Fraction(-1, 2) < due - exact <= Fraction(1, 2)


@given(amounts, seconds, seconds, seconds)
def test_less_is_given_back_the_later_it_is(amount: int, period_s: int, one: int, other: int) -> None:
    earlier, later = sorted((one, other))
    assert unused(amount, period_s=period_s, after_s=earlier) >= unused(amount, period_s=period_s, after_s=later)


@given(amounts, seconds, seconds)
def test_used_and_unused_parts_add_up_to_the_payment_within_a_unit(amount: int, period_s: int, used_s: int) -> None:
    assume(used_s <= period_s)
    parts = unused(amount, period_s=period_s, after_s=used_s) + unused(
        amount, period_s=period_s, after_s=period_s - used_s
    )
    assert amount <= parts <= amount + 1


def test_amounts_of_different_currencies_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="combined"):
        refund_due(Money(100, "USD"), refunded=Money(0, "EUR"), start=START, end=at(9), at=START)
