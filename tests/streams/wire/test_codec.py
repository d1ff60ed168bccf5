"""JSON of clients is decoded within bounds. Times are encoded as RFC 3339."""

import json  # noqa: TID251 - another encoder to compare with
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import ZERO_TIME, dumps, loads, loads_request, now_ms, rfc3339
from streams.wire.errors import InvalidParameter
from streams.wire.nesting import MAX_CONTAINERS, MAX_DEPTH, levels, outside_strings
from tests.calendar.clock import utc_now

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8) | st.text('"\\[]{}', max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


def nesting(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(nesting, value.values()), default=0)
    return 1 + max(map(nesting, value), default=0) if isinstance(value, list) else 0


@given(VALUES)
def test_depth_counts_brackets_outside_strings(value: Any):
    for raw in (json.dumps(value).encode(), dumps(value)):
        outside, in_string = outside_strings(raw)
        assert not in_string
        assert max(levels(outside)) == nesting(value)


@given(VALUES)
def test_valid_requests_are_decoded(value: Any):
    raw = json.dumps(value).encode()

    assert loads_request(raw) == value == loads(raw)


@pytest.mark.parametrize(
    ("opened", "closed"), [(b"[", b"]"), (b'{"a":', b"}"), (b' [ "\\"[[" , ', b"]"), (b'{"[{":', b"}")]
)
def test_nesting_of_32_is_accepted_and_33_refused(opened: bytes, closed: bytes):
    def nested(levels: int) -> bytes:
        return opened * levels + b"1" + closed * levels

    loads_request(nested(MAX_DEPTH))
    with pytest.raises(InvalidParameter, match=r"^invalid_parameter: body is nested deeper than 32 levels$"):
        loads_request(nested(MAX_DEPTH + 1))


def test_brackets_in_strings_and_side_by_side_do_not_add_depth():
    loads_request(dumps({"a" + "{[" * 40: '"[' * 40 + "\\", "b": [[]] * 100}))


def test_deep_nesting_is_refused_before_it_is_decoded():
    with pytest.raises(InvalidParameter, match="nested deeper"):
        loads_request(b"[" * MAX_CONTAINERS)


def test_ten_thousand_objects_and_arrays_are_accepted_and_one_more_refused():
    loads_request(dumps(["[", *[[], {}] * (MAX_CONTAINERS // 2 - 1), {}]))
    with pytest.raises(InvalidParameter, match=r"body has more than 10000 objects and arrays$"):
        loads_request(dumps([[]] * MAX_CONTAINERS))


@pytest.mark.parametrize(
    "value", [{"a\0": 1}, {"a": "\0"}, {"a": [{"b": "x\0y"}]}, ["\0"], "\0", {"a": {"\0": {}}}, {"\\u0000": "\0"}]
)
def test_nul_is_refused_wherever_it_stands(value: Any):
    with pytest.raises(InvalidParameter, match=r"body must not contain the character U\+0000"):
        loads_request(dumps(value))


def test_an_escaped_backslash_before_u0000_is_not_nul():
    assert loads_request(rb'{"a": "\\u0000"}') == {"a": r"\u0000"}


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b'{"a":1,}', b"{'a':1}", b"[1 2]", b"{]", b'{"a":1}{}', b"NaN", b"1e999"),
        *(b"\xff", b'"\xed\xa0\x80"', b'"\\ud800"', b"\xef\xbb\xbf{}", b'"\n"', b'"\0"'),
    ],
)
def test_malformed_json_is_refused_with_its_position(raw: bytes):
    with pytest.raises(InvalidParameter, match=r"^invalid_parameter: body is not valid JSON: .+ at byte \d+$"):
        loads_request(raw)


def test_last_of_equal_keys_wins():
    assert loads_request(b'{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, "0001-01-01T00:00:00Z"),
        (datetime(1, 1, 1, tzinfo=UTC), ZERO_TIME),
        (datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC), "2026-03-04T05:06:07Z"),
        (datetime(2026, 3, 4, 5, 6, 7, 80_000, tzinfo=UTC), "2026-03-04T05:06:07.080000Z"),
        (datetime(2026, 3, 4, 1, 0, tzinfo=timezone(timedelta(hours=2))), "2026-03-03T23:00:00Z"),
    ],
)
def test_times_are_utc_with_z_and_no_time_is_the_zero_time(moment: datetime | None, text: str):
    assert rfc3339(moment) == text


def test_now_is_unix_milliseconds():
    before = utc_now().timestamp()

    assert before - 1 < now_ms() / 1000 < before + 60
