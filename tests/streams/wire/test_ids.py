"""Ids are UUIDs of version 7 without dashes. Only well-formed request ids are accepted."""

import hashlib
import string
from uuid import RFC_4122, UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.wire.ids import is_id, new_id, request_id, sha256_hex
from tests.calendar.clock import epoch_ns

ALLOWED = string.ascii_letters + string.digits + "._-"


def test_ids_are_uuids_of_version_7():
    made = [new_id() for _ in range(200)]

    assert all(len(text) == 32 and text == text.lower() for text in made)
    assert {UUID(text).version for text in made} == {7}
    assert {UUID(text).variant for text in made} == {RFC_4122}
    assert len(set(made)) == len(made)


def test_ids_contain_their_creation_time_in_milliseconds():
    before = epoch_ns() // 1_000_000
    made = UUID(new_id())
    after = epoch_ns() // 1_000_000

    assert before <= made.int >> 80 <= after


def test_ids_sort_by_time_also_within_a_millisecond():
    made = [new_id() for _ in range(1000)]

    assert made == sorted(made)


def test_the_last_62_bits_are_random():
    made = [UUID(new_id()).int for _ in range(400)]
    ones, zeros = 0, 0
    for value in made:
        ones |= value
        zeros |= ~value
    random_bits = (1 << 62) - 1

    assert ones & zeros & random_bits == random_bits


@pytest.mark.parametrize("text", ["", "0" * 31, "0" * 33, "0" * 32 + "\n", "G" * 32, "A" * 32, f"{UUID(int=0)}"])
def test_other_formats_are_not_ids(text: str):
    assert is_id(new_id())
    assert not is_id(text)


@given(st.text(ALLOWED, min_size=1, max_size=64))
def test_valid_request_ids_are_kept(given_id: str):
    assert request_id(given_id) == given_id


@given(
    st.none() | st.text(ALLOWED, min_size=65, max_size=80) | st.from_regex(r"a?[^A-Za-z0-9._-]b?", fullmatch=True)
)
@example("")
@example("a\n")
def test_request_id_in_another_form_is_replaced(given_id: str | None):
    made = request_id(given_id)

    assert made != given_id
    assert is_id(made)


def test_hash_is_in_hex():
    assert sha256_hex(b"abc") == hashlib.sha256(b"abc").hexdigest()
