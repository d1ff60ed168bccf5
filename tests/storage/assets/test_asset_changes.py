"""What entries do to an asset, in whatever order events are reported."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from storage.assets.assets import Asset, apply_entry
from storage.assets.entries import Entry
from streams.wire.period import Period

START = datetime(2026, 1, 31, tzinfo=UTC)
MONTH = Period.parse("P1M")
NOW = START + timedelta(days=500)


def payment(number: int, kind: str = "grant") -> Entry:
    """The entry of the monthly payment with a number, or of its refund."""
    starts_at = Period(number, 0).after(START)
    return Entry(
        f"{kind}:{number}",
        kind,  # type: ignore[arg-type]
        "pro",
        "subscription",
        "I-1",
        quantity=number,
        starts_at=starts_at,
        ends_at=Period(number + 1, 0).after(START),
    )


def restore(number: int) -> Entry:
    return replace(payment(number, "restore"), origin="restore")


def after(*entries: Entry) -> Asset | None:
    return reduce(lambda asset, entry: apply_entry(asset, entry, at=NOW), entries, None)


@given(st.permutations(range(6)))
def test_payments_of_a_subscription_may_be_reported_in_any_order(order: list[int]) -> None:
    asset = after(*map(payment, order))
    assert asset is not None
    last = payment(5)
    assert (asset.starts_at, asset.paid_ends_at, asset.quantity) == (last.starts_at, last.ends_at, 5)


def test_a_refund_of_the_last_payment_ends_a_subscription() -> None:
    asset = after(payment(0), payment(1), payment(1, "refund"))
    assert asset is not None
    assert (asset.ends_at, asset.refunded_at, asset.paid_ends_at) == (NOW, NOW, payment(1).ends_at)
    assert not asset.is_valid(NOW)


def test_a_refund_of_an_earlier_payment_changes_nothing() -> None:
    assert after(payment(0), payment(1), payment(0, "refund")) == after(payment(0), payment(1))


def test_a_refund_that_is_restored_leaves_no_trace_but_the_origin() -> None:
    before = after(payment(0), payment(1))
    restored = after(payment(0), payment(1), payment(1, "refund"), restore(1))
    assert before is not None
    assert restored == replace(before, origin="restore")


def test_the_end_that_an_operator_has_set_outlasts_a_dispute() -> None:
    end = payment(0).starts_at + timedelta(days=3)  # type: ignore[operator]
    cut = Entry("admin:1", "adjust", "pro", "subscription", "I-1", ends_at=end)
    asset = after(payment(0), cut, payment(0, "refund"), restore(0))
    assert asset is not None
    assert (asset.ends_at, asset.custom_ends_at) == (end, end)


@st.composite
def reversed_payments(draw: st.DrawFn) -> tuple[list[Entry], ...]:
    """Two orders of the same entries, in which refunds are after their payments, and restores after both."""
    stories = [
        [payment(number), payment(number, "refund"), restore(number)][: draw(st.integers(0, 3))]
        for number in range(4)
    ]
    numbers = [number for number, story in enumerate(stories) for _ in story]
    orders = []
    for _ in range(2):
        left = [iter(story) for story in stories]
        orders.append([next(left[number]) for number in draw(st.permutations(numbers))])
    return tuple(orders)


@given(reversed_payments())
def test_disputes_of_different_periods_may_be_reported_in_any_order(orders: tuple[list[Entry], ...]) -> None:
    first, second = (after(*order) for order in orders)
    assert first == second


def test_an_earlier_payment_that_is_reported_late_does_not_undo_a_refund() -> None:
    refunded = after(payment(1), payment(1, "refund"))
    assert after(payment(1), payment(1, "refund"), payment(0)) == refunded


def test_a_payment_after_a_refund_begins_anew() -> None:
    asset = after(payment(0), payment(0, "refund"), payment(1))
    assert asset is not None
    assert (asset.ends_at, asset.ended_at, asset.refunded_at) == (payment(1).ends_at, None, None)


def test_the_end_that_an_operator_has_set_holds_until_a_payment_goes_beyond_it() -> None:
    end = payment(1).starts_at + timedelta(days=3)  # type: ignore[operator]
    adjusted = Entry("admin:1", "adjust", "pro", "subscription", "I-1", ends_at=end)
    longer = after(payment(0), adjusted)
    assert longer is not None
    assert (longer.ends_at, longer.paid_ends_at) == (end, payment(0).ends_at)
    renewed = after(payment(0), adjusted, payment(1))
    assert renewed is not None
    assert (renewed.ends_at, renewed.custom_ends_at) == (payment(1).ends_at, None)


KINDS = ["grant", "refund", "restore", "consume", "return", "adjust"]
CHANGES = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 50)), max_size=20)


def coins(*changes: tuple[str, int]) -> Asset | None:
    """Apply changes of units, in which adjustments take units away."""
    return after(
        *(
            Entry(str(number), kind, "coins", "consumable", quantity=-units if kind == "adjust" else units)  # type: ignore[arg-type]
            for number, (kind, units) in enumerate(changes)
        )
    )


@given(CHANGES.flatmap(lambda changes: st.tuples(st.just(changes), st.permutations(changes))))
def test_units_do_not_depend_on_the_order_of_entries(orders: tuple[list[tuple[str, int]], ...]) -> None:
    first, second = (coins(*order) for order in orders)
    assert (first and first.quantity) == (second and second.quantity)


def test_units_that_were_used_before_a_refund_count_against_later_ones() -> None:
    bought, used, refunded = ("grant", 100), ("consume", 60), ("refund", 100)
    left = [coins(*changes) for changes in ((bought, used, refunded), (bought, used, refunded, bought))]
    assert [asset and asset.units for asset in left] == [0, 40]


def test_units_of_a_period_that_has_passed_are_not_given_back_to_the_next() -> None:
    used = replace(payment(1, "consume"), quantity=1)
    back = replace(used, kind="return")
    same, next_ = (after(*entries) for entries in ((payment(1), used, back), (payment(1), used, payment(2), back)))
    assert [asset and asset.quantity for asset in (same, next_)] == [1, 2]
