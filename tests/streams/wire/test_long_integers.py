"""Integers beyond 64 bits are read and written with all their digits; all other JSON is read as by orjson."""

from json import dumps as dumps_of_python  # noqa: TID251 - it writes integers of any size
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter
from streams.wire.long_integers import LongInteger, loads_exact

LONG = 2**64
integers = st.integers(min_value=-(10**60), max_value=10**60) | st.sampled_from(
    [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**18, 10**4000]
)
values = st.recursive(
    st.none() | st.booleans() | st.text(alphabet='0123456789\\"{}[]-a') | integers,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='0123456789\\"-'), inner),
)


@given(values)
def test_every_integer_is_written_as_it_was_read(value: Any):
    raw = dumps_of_python(value, separators=(",", ":"), ensure_ascii=False).encode()
    assert dumps(loads_exact(raw)) == raw
    assert dumps(loads_request(raw)) == raw


@given(st.text(alphabet='0123456789.eE+-"\\[]{},:a \n', max_size=60) | st.text(max_size=60))
def test_what_orjson_refuses_is_refused(text: str):
    try:
        expected = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "infinity" not in error.msg:
            with pytest.raises(orjson.JSONDecodeError):
                loads_exact(text.encode(errors="surrogatepass"))
    else:
        found = loads_exact(text.encode())
        assert found == expected or float(found) == expected  # `LongInteger` equals only itself.


@pytest.mark.parametrize(
    "raw", [b"[%b]", b'{"a":%b}', b'{"a":[{"b":%b}],"c":"%b"}', b'["\\"%b",%b]', b'["\\\\",%b]', b" %b ", b"-%b"]
)
def test_values_are_long_integers_and_texts_stay_texts(raw: bytes):
    digits = str(LONG).encode()
    assert dumps(loads_exact(raw.replace(b"%b", digits))) == raw.replace(b"%b", digits).strip()


@pytest.mark.parametrize("raw", [b"{%b:1}", b"[0%b]", b"[%b.]", b"[%bx]", b'[%b"%b"]', b"[+%b]", b"[%b"])
def test_long_digits_that_are_no_value_are_refused_with_their_position(raw: bytes):
    with pytest.raises(InvalidParameter, match="at byte"):
        loads_request(raw.replace(b"%b", str(LONG).encode()))


def test_a_long_integer_is_a_float_that_shows_its_digits():
    value = loads_exact(str(LONG).encode())
    assert isinstance(value, LongInteger)
    assert (float(value), str(value), f"{value}") == (float(LONG), str(LONG), str(LONG))
    assert loads_exact(b"9" * 400) == loads_exact(b"9" * 400) != loads_exact(b"9" * 401)
    assert float(loads_exact(b"-" + b"9" * 400)) == float("-inf")
