"""The amount of a withdrawal is the number that was sent, and never the binary number closest to it."""

import asyncio
from fractions import Fraction
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from app.withdrawals.withdrawals import NewWithdrawal
from streams.wire.errors import InvalidParameter
from tests.app.withdrawals.payer import Payer

DIGITS = st.text("0123456789", min_size=1, max_size=20)
WHOLE = st.one_of(st.integers(0, 99), st.integers(0, 10**12)).map(str)
FRACTION = st.one_of(
    st.sampled_from(["", ".0", ".5", ".30", ".25", ".2500", ".001", ".0049"]), DIGITS.map(".{}".format)
)
EXPONENT = st.one_of(
    st.just(""),
    st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 12)),
)
LITERALS = st.builds("{}{}{}{}".format, st.sampled_from(["", "", "", "-"]), WHOLE, FRACTION, EXPONENT)
MOST = 10**9


def cents_of(literal: str) -> int | None:
    """The cents that a literal stands for, or `None` if it is no valid amount."""
    cents = Fraction(literal) * 100
    return cents.numerator if cents.denominator == 1 and 0 < cents <= MOST * 100 else None


async def started(payer: Payer, uid: str, literal: str) -> tuple[int, str]:
    """Withdraw the amount `literal`. Return the status, and its amount or the message of the error."""
    status, reply = await payer.withdraw_text(uid, literal, withdraw_id=uuid4().hex)
    return status, f"{reply['withdraw']['cash_num']}" if status == 200 else reply["error"]["message"]


async def stored(payer: Payer, uid: str) -> list[int]:
    async with payer.server.services.database.connection() as conn:
        rows = await conn.fetch("select amount from withdrawals where uid = $1 order by created_at", uid)
        entries = await conn.fetch("select amount from withdrawal_entries where uid = $1 order by entry_id", uid)
    assert rows == entries
    return [row["amount"] for row in rows]


@pytest.mark.parametrize(
    ("literal", "cents"),
    [
        ("0.1", 10),
        ("0.30", 30),
        ("12.3000000000000000000000", 1230),
        ("1e1", 1000),
        ("1.23E+1", 1230),
        ("1230e-2", 1230),
        ("7", 700),
        ("1000000000", 10**11),
        ("999999999.99", 99_999_999_999),
    ],
)
async def test_an_amount_is_what_was_sent(payer: Payer, literal: str, cents: int) -> None:
    uid = await payer.user()
    status, amount = await started(payer, uid, literal)
    assert status == 200, amount
    assert Fraction(amount) * 100 == cents
    assert await stored(payer, uid) == [cents]


@pytest.mark.parametrize(
    "literal",
    [
        "0.30000000000000004",
        "0.1000000000000000055511151231257827",
        "12.300000000000000000000000000001",
        "0.005",
        "1e-400",
        "1e-999999999",
        "1e-99999999999999999999",
        "0.0",
        "-0",
        "-0.0",
        "-1e1",
        "1000000000.01",
        "1000000000.0000000000000000001",
        "1e10",
        "1e300",
        "1e400",
        "1e99999999999999999999",
        "NaN",
        "Infinity",
        "1.",
        ".5",
        "01",
        "+1",
        '"12.3"',
        "true",
        "null",
        "[1]",
    ],
)
async def test_what_is_no_amount_is_refused(payer: Payer, literal: str) -> None:
    uid = await payer.user()
    status, message = await started(payer, uid, literal)
    assert status == 400, message
    assert message.startswith(("invalid_parameter: cash_num ", "invalid_parameter: body "))
    assert await stored(payer, uid) == []


async def test_a_repeat_may_write_the_same_number_in_another_form(payer: Payer) -> None:
    uid, withdraw_id = await payer.user(), uuid4().hex

    async def send(literal: str) -> int:
        status, _ = await payer.withdraw_text(uid, literal, withdraw_id=withdraw_id)
        return status

    assert [await send(form) for form in ("12.3", "12.30", "1.23e1")] == [200, 200, 200]
    assert [await send(form) for form in ("12.31", "12.3000000000000000001")] == [409, 400]
    assert await stored(payer, uid) == [1230]


async def test_any_number_is_stored_exactly_or_refused(payer: Payer) -> None:
    uid, loop = await payer.user(), asyncio.get_running_loop()

    async def check(literal: str) -> None:
        cents, before = cents_of(literal), await stored(payer, uid)
        status, amount = await started(payer, uid, literal)
        assert status == (400 if cents is None else 200), (literal, amount)
        assert await stored(payer, uid) == [*before, *([] if cents is None else [cents])]
        assert cents is None or Fraction(amount) * 100 == cents

    # Hypothesis blocks a thread of its own.
    @settings(max_examples=60, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck))
    @given(LITERALS)
    def run_example(literal: str) -> None:
        asyncio.run_coroutine_threadsafe(check(literal), loop).result()

    await asyncio.to_thread(run_example)


@given(LITERALS)
@example("0.1000000000000000055511151231257827")
@example("1000000000.0000000000000000001")
def test_a_body_has_the_number_that_was_sent(literal: str) -> None:
    raw = f'{{"cash_num": {literal}, "withdraw_id": "w", "start_time": "2026-11-23"}}'.encode()
    fits = 0 < Fraction(literal) <= MOST and (Fraction(literal) * 10_000).denominator == 1
    try:
        read = NewWithdrawal.read(raw)
    except InvalidParameter:
        assert not fits
    else:
        assert fits
        assert Fraction(read.cash_num) == Fraction(literal)
        assert NewWithdrawal.of({**read.model_dump(mode="json")}) == read
