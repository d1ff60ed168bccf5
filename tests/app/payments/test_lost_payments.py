"""What is lost of a payment follows from its refunds, reversals and disputes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.payments.reversals import lost_of
from storage.assets.entries import Entry
from storage.payments.reversals import Reversal, ReversalKind, ReversalState, version_at
from streams.wire.money import Money
from tests.calendar.clock import utc_now

PAID = Money(200, "USD")
NOW = utc_now()
COINS = Entry("card:1", "grant", "coins", "consumable", quantity=100)
PRO = Entry("card:2", "grant", "pro", "subscription", "I-1", quantity=100)
KEEPER = Entry("card:3", "grant", "keeper", "nonconsumable", quantity=1)


def reversal(kind: ReversalKind, amount: int | None, state: ReversalState = "taken", name: str = "r") -> Reversal:
    currency = None if amount is None else "USD"
    return Reversal("p", name, kind, amount, currency, state, NOW, version_at(NOW))


@pytest.mark.parametrize(
    ("reversals", "coins", "pro", "keeper"),
    [
        ([], 0, 0, 0),
        ([("refund", 199)], 0, 0, 0),
        ([("refund", 200)], 100, 1, 1),
        ([("refund", 100), ("refund", 100)], 100, 1, 1),
        ([("reversal", 1)], 1, 0, 0),
        ([("reversal", 99)], 50, 0, 0),
        ([("reversal", 100)], 50, 0, 1),
        ([("reversal", 100), ("refund", 100)], 100, 1, 1),
        ([("reversal", None)], 100, 1, 1),
        ([("dispute", 100, "open")], 50, 0, 1),
        ([("dispute", 200, "open")], 100, 1, 1),
        ([("dispute", 100), ("reversal", 100)], 50, 0, 1),
        ([("dispute", 100), ("refund", 100)], 50, 0, 1),
        ([("dispute", 100, "open"), ("refund", 100)], 100, 1, 1),
        ([("dispute", 200, "undone"), ("reversal", 200)], 0, 0, 0),
        ([("dispute", 200, "undone"), ("refund", 200)], 100, 1, 1),
        ([("dispute", 200, "closed"), ("reversal", 200)], 100, 1, 1),
        ([("dispute", 200, "closed")], 0, 0, 0),
        ([("reversal", 200, "undone")], 0, 0, 0),
    ],
)
def test_what_is_taken_back(reversals: list[tuple[Any, ...]], coins: int, pro: int, keeper: int) -> None:
    lost = lost_of(PAID, [reversal(*each, name=str(number)) for number, each in _named(reversals)])
    assert (lost.units_of(COINS), lost.units_of(PRO), lost.units_of(KEEPER)) == (coins, pro, keeper)


def _named(reversals: list[tuple[Any, ...]]) -> list[tuple[int, tuple[Any, ...]]]:
    return [(number, (*each, "taken")[:3]) for number, each in enumerate(reversals)]


def at(hour: int, each: Reversal, *, changed: int = 0) -> Reversal:
    """Let a reversal begin in an hour, and its state in another one."""
    begun = NOW + timedelta(hours=hour)
    return replace(each, happened_at=begun, version=version_at(NOW + timedelta(hours=max(hour, changed))))


@pytest.mark.parametrize(
    ("reversals", "lost"),
    [
        ([at(0, reversal("dispute", 200, "undone", "d"), changed=2), at(1, reversal("reversal", 200))], 0),
        ([at(0, reversal("dispute", 200, "undone", "d"), changed=2), at(3, reversal("reversal", 200))], 200),
        ([at(1, reversal("dispute", 200, "undone", "d"), changed=2), at(0, reversal("reversal", 200))], 200),
        ([at(0, reversal("dispute", 60, "undone", "d"), changed=2), at(1, reversal("reversal", 80))], 80),
        ([at(1, reversal("dispute", 60, "open", "d")), at(0, reversal("reversal", 60))], 120),
        ([at(1, reversal("dispute", 60, "open", "d")), at(2, reversal("reversal", 60))], 60),
        ([at(0, reversal("dispute", 60, "taken", "d"), changed=1), at(2, reversal("reversal", 60))], 60),
        ([at(0, reversal("dispute", 60, "taken", "d"), changed=1), at(2, reversal("reversal", 60, "undone"))], 60),
    ],
)
def test_a_reversal_stands_for_the_dispute_during_which_it_began(reversals: list[Reversal], lost: int) -> None:
    assert lost_of(PAID, reversals).amount == lost


def test_each_reversal_stands_for_one_dispute() -> None:
    won = [at(0, reversal("dispute", 60, "undone", name), changed=2) for name in ("d", "e")]
    reversals = [at(1, reversal("reversal", 60, name=name)) for name in ("r", "s", "t")]
    assert lost_of(PAID, [*won, *reversals]).amount == 60


def test_a_reversal_in_another_currency_counts_as_all_of_the_payment() -> None:
    assert lost_of(PAID, [replace(reversal("reversal", 1), currency="EUR")]).is_whole


REVERSALS = st.lists(
    st.builds(
        reversal,
        st.sampled_from(["refund", "reversal", "dispute"]),
        st.integers(1, 200),
        st.sampled_from(["open", "taken", "undone", "closed"]),
    ),
    max_size=6,
).map(lambda found: [replace(each, reversal_id=f"r{number}") for number, each in enumerate(found)])


@given(REVERSALS.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_the_order_of_reversals_does_not_matter_and_no_more_than_all_is_lost(
    orders: tuple[list[Reversal], list[Reversal]],
) -> None:
    first, second = (lost_of(PAID, found) for found in orders)
    assert (first.amount, first.is_whole) == (second.amount, second.is_whole)
    assert 0 <= first.units_of(COINS) <= 100
    assert (first.amount == 200) >= first.is_whole
