"""Options in API keys, and the repeatable faults that they select."""

import pytest
from aiohttp import ClientConnectionError, ClientSession
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import loads
from streams.wire.errors import InvalidParameter
from vendors.sandbox.faults import REFUSALS, Fault, KeyOptions, key_of
from vendors.sandbox.rest_dialect import rest_dialect
from vendors.sandbox.server import Running


def test_key_without_options_has_the_defaults():
    assert KeyOptions.of_key("sandbox") == KeyOptions()


def test_options_are_parsed_from_the_key():
    key = "sandbox,fault=cut_mid_stream,position=before,rate=0.05,seed=7,pace_ms=20,text=Hi%2C%20you%20%3D%20me"

    assert KeyOptions.of_key(key) == KeyOptions(
        fault=Fault.CUT_MID_STREAM, position=0, rate=0.05, seed=7, pace_ms=20, text="Hi, you = me"
    )


@given(st.text(max_size=40), st.integers(0, 9), st.sampled_from(Fault))
def test_created_keys_are_parsed_unchanged(text: str, position: int, fault: Fault):
    key = key_of(text=text, position=position, fault=fault)

    assert key.isascii()
    assert KeyOptions.of_key(key) == KeyOptions(text=text, position=position, fault=fault)


@pytest.mark.parametrize(("position", "outputs"), [("before", 0), ("after", 1), ("0", 0), ("7", 7)])
def test_position_is_a_word_or_a_count(position: str, outputs: int):
    assert KeyOptions.of_key(f"sandbox,position={position}").position == outputs


def test_any_other_key_is_valid_and_masked():
    assert KeyOptions.of_key("sk-secret,fault=server_error") == KeyOptions(name="sk-s…")


@pytest.mark.parametrize(
    ("key", "reported"),
    [
        ("sandbox,fualt=server_error", "fualt is not a field"),
        ("sandbox,fault=earthquake", "fault must be one of"),
        ("sandbox,rate=2", "rate "),
        ("sandbox,position=behind", "position "),
        ("sandbox,position=-1", "position "),
        ("sandbox,times", "times "),
        ("sandbox,", " is not a field"),
    ],
)
def test_misspelt_options_are_reported(key: str, reported: str):
    with pytest.raises(InvalidParameter, match=reported):
        KeyOptions.of_key(key)


def falls(key_options: KeyOptions, calls: int = 1_000) -> list[bool]:
    return [key_options.has_fault(number) for number in range(calls)]


def test_rate_is_the_share_of_calls_and_the_same_every_time():
    key_options = KeyOptions(fault=Fault.SERVER_ERROR, rate=0.05, seed=7)

    assert falls(key_options) == falls(key_options)
    assert 30 < sum(falls(key_options)) < 70
    assert falls(key_options) != falls(KeyOptions(fault=Fault.SERVER_ERROR, rate=0.05, seed=8))


def test_a_rate_of_one_is_every_call_and_zero_is_none():
    assert all(falls(KeyOptions(fault=Fault.SERVER_ERROR)))
    assert not any(falls(KeyOptions(fault=Fault.SERVER_ERROR, rate=0)))
    assert not any(falls(KeyOptions()))


def test_times_are_the_first_calls():
    assert falls(KeyOptions(fault=Fault.SERVER_ERROR, times=2), 4) == [True, True, False, False]


async def test_refused_callers_get_no_output(sandbox: Running) -> None:
    headers = {"Authorization": f"Bearer {key_of(fault='refuse')}"}
    async with ClientSession() as http:
        with pytest.raises(ClientConnectionError):
            await http.get(f"{sandbox.url}/openai/v1/models", headers=headers)
    # aiohttp repeats a GET request by itself.
    assert {(entry.how, entry.billed.total()) for entry in sandbox.bill.since()} == {("fault", 0)}


@pytest.mark.parametrize("fault", REFUSALS)
def test_refusals_of_a_plain_vendor_name_their_fault(fault: Fault):
    refusal = rest_dialect("acme").refuse(fault, KeyOptions(retry_after_s=7))

    assert refusal.status >= 400
    assert loads(refusal.body)["error"]["code"] == fault
    assert (refusal.headers.get("Retry-After") == "7") is (refusal.status in {429, 503})
