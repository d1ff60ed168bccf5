"""JSON with long texts is decoded like any other, but over many iterations of the event loop."""

import asyncio
import json  # noqa: TID251 - another encoder to compare with
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.large_json import loads_large_request
from streams.tasks import background
from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter

KIB, MIB = 1024, 1024 * 1024
REST = 4 * KIB
LONG = st.sampled_from(["AbC/", "é", "\U0001f600", "a\\", "/\n", "xé"]).map(
    lambda unit: unit * (160 * KIB // len(unit))
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8) | st.text('"\\[]{}', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | TEXT | LONG,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MASK = b'{"data":{"prompt":"a","mask":"%b"}}' % (b"iVBORw0K/" * (8 * MIB // 9))
HOSTILE = {
    "numbers": b'{"a":[0%b]}' % (b",0" * (4 * MIB)),
    "objects": b'{"a":[0%b]}' % (b',{"a":0}' * MIB),
    "quotes": b'{"a":["%b]}' % (b'","' * (8 * MIB // 3)),
    "quotes before a text": b'{"a":["%b","%b"]}' % (b'","' * (4 * MIB // 3), b"a" * (4 * MIB)),
    "escaped quotes": b'{"a":"%b"}' % (rb"\"" * (4 * MIB)),
    "escapes": b'{"a":"%b"}' % (rb"\u00e9" * (8 * MIB // 6)),
    "spaces": b'{"a":1%b}' % (b" " * (8 * MIB)),
    "texts": b'{"a":[%b"a"]}' % (b'"%b",' % (b"a" * 140 * KIB) * 58),
}


@given(VALUES, st.booleans())
@settings(max_examples=150, deadline=None)
async def test_a_value_is_decoded_or_refused_for_its_rest(value: Any, ascii_only: bool):
    raw = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).replace("/", r"\/").encode()
    try:
        decoded = await loads_large_request(raw, rest_bytes=REST)
    except InvalidParameter as refused:
        assert any(text in str(refused) for text in ("besides long texts", "escapes", "name"))  # noqa: PT017
        assert len(raw) > REST
    else:
        assert decoded == value == loads_request(raw)


@pytest.mark.parametrize("unit", ["AbC/", "é", "a" * 76 + "\n"])
async def test_long_texts_are_values(unit: str):
    text = unit * (200 * KIB // len(unit))
    value = {"a": [text, {"b": text + "!"}], "c": '"\\', "d": 'x"' + "y" * 20}
    assert await loads_large_request(dumps(value), rest_bytes=REST) == value


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a":"%b' % (b"x" * 300 * KIB), "besides long texts"),
        (b'{"a":"%b"' % (b"x" * 300 * KIB), "not valid JSON"),
        (b'{"a":"%b\n"}' % (b"x" * 300 * KIB), "not valid JSON"),
        (b'{"a":"%b\xff"}' % (b"x" * 300 * KIB), "not valid JSON"),
        (b'{"%b":1}' % (b"x" * 300 * KIB), "name that is too long"),
        (b'{"a":"x","b":%b"c"}' % (b"1" * 300 * KIB), "besides long texts"),
        (b'{"a":"\\"%b"}' % (b"x" * 300 * KIB), "besides long texts"),
        (b'{"a":"%b\\u0000"}' % (b"x" * 300 * KIB), "not valid JSON"),
    ],
)
async def test_what_is_invalid_is_refused(raw: bytes, message: str):
    with pytest.raises(InvalidParameter, match=message):
        await loads_large_request(raw, rest_bytes=REST)


async def longest_step_s(work: Callable[[], Any]) -> float:
    """Return the CPU time of the longest iteration of the event loop during `work`; the least of several runs."""
    longest = []
    for _ in range(3):
        steps = [0.0]
        async with background(_tick(steps)):
            await asyncio.sleep(0)
            with suppress(InvalidParameter):
                await work()
        longest.append(max(steps))
    return min(longest)


async def _tick(steps: list[float]) -> None:
    while True:
        before = time.thread_time()
        await asyncio.sleep(0)
        steps.append(time.thread_time() - before)


def at_once_s() -> float:
    times = []
    for _ in range(3):
        before = time.thread_time()
        loads_request(MASK)
        times.append(time.thread_time() - before)
    return min(times)


@pytest.mark.parametrize("raw", [MASK, *HOSTILE.values()], ids=["mask", *HOSTILE])
async def test_no_body_takes_long_in_one_iteration(raw: bytes):
    step_s = await longest_step_s(lambda: loads_large_request(raw, rest_bytes=128 * KIB))
    assert step_s < at_once_s() / 2, f"{step_s * 1000:.1f} ms"
