"""A box opens in its place, with its key, unaltered, and in no other case."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.secrets import BoxRefused, Keyring

OLD, NEW = "0123456789abcdef" * 4, "fedcba9876543210" * 4
KEYRING = Keyring.from_hex(OLD)
PLACE = "default/vendor_accounts/main/api_key"


@given(plain=st.text(), place=st.text())
def test_what_is_sealed_opens_in_its_place(plain, place):
    assert KEYRING.open(KEYRING.seal(plain, aad=place), aad=place) == plain


@given(plain=st.text(min_size=8), place=st.text())
def test_a_box_shows_nothing_and_no_two_are_alike(plain, place):
    box = KEYRING.seal(plain, aad=place)
    assert plain.encode() not in base64.urlsafe_b64decode(box)
    assert box != KEYRING.seal(plain, aad=place)


def test_a_box_moved_to_another_place_does_not_open():
    box = KEYRING.seal("sk-1", aad=PLACE)
    with pytest.raises(BoxRefused):
        KEYRING.open(box, aad="other/vendor_accounts/main/api_key")


@given(at=st.integers(min_value=0), flip=st.integers(min_value=1, max_value=255))
def test_a_box_altered_anywhere_does_not_open(at, flip):
    raw = bytearray(base64.urlsafe_b64decode(KEYRING.seal("sk-1", aad=PLACE)))
    raw[at % len(raw)] ^= flip
    with pytest.raises(BoxRefused):
        KEYRING.open(base64.urlsafe_b64encode(raw).decode(), aad=PLACE)


@given(box=st.text())
def test_what_is_no_box_is_refused(box):
    with pytest.raises(BoxRefused):
        KEYRING.open(box, aad=PLACE)


def test_after_a_new_key_came_first_old_boxes_still_open_and_new_ones_need_the_new_key():
    old_box = KEYRING.seal("sk-1", aad=PLACE)
    both = Keyring.from_hex(f"{NEW},{OLD}")
    assert both.open(old_box, aad=PLACE) == "sk-1"
    new_box = both.seal("sk-2", aad=PLACE)
    assert Keyring.from_hex(NEW).open(new_box, aad=PLACE) == "sk-2"
    with pytest.raises(BoxRefused, match="unknown key"):
        KEYRING.open(new_box, aad=PLACE)


def test_each_purpose_has_a_key_of_its_own_that_is_the_same_every_time():
    links, codes = KEYRING.derive("links"), KEYRING.derive("codes")
    assert len(links) == len(codes) == 32
    assert links != codes
    assert Keyring.from_hex(OLD).derive("links") == links
    assert Keyring.from_hex(NEW).derive("links") != links


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, f"{OLD},"])
def test_a_key_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match=r"32 bytes|hexadecimal"):
        Keyring.from_hex(text)
