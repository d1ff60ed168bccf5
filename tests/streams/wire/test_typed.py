"""Codes, phone numbers and addresses as people type or paste them."""

from unicodedata import category, normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from storage.mail.addresses import normalized
from streams.wire.typed import plus_for_blank, typed_address, typed_code, typed_phone_number

INVISIBLE = st.text(st.characters(categories=["Cf"]), max_size=2)
SPACE = st.text(st.characters(categories=["Zs"]), max_size=2)
DASH = st.sampled_from(["", "-", *map(chr, [*range(0x2010, 0x2016), 0x2212, 0x2043, 0xFE58, 0xFE63, 0xFF0D])])
DIGITS = st.text("0123456789", min_size=6, max_size=12)
ZEROS = [0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10, 0x1D7CE]
"""The zeros of several scripts. The other digits follow each."""
WORD = st.text(st.characters(categories=["L", "M", "N"]), min_size=1, max_size=6)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def spelled(draw: st.DrawFn, digits: str) -> str:
    """Return digits in mixed scripts, with what keyboards and pages add."""
    shown = ""
    for digit in digits:
        gap = draw(INVISIBLE) + draw(SPACE) + draw(DASH)
        shown += gap + chr(draw(st.sampled_from(ZEROS)) + int(digit)) + draw(INVISIBLE)
    return shown + draw(SPACE)


@given(st.data(), DIGITS)
def test_any_spelling_of_digits_is_the_code(data: st.DataObject, digits: str) -> None:
    assert typed_code(data.draw(spelled(digits))) == digits


@given(st.data(), DIGITS)
def test_any_spelling_of_a_number_is_the_number(data: st.DataObject, digits: str) -> None:
    plus = data.draw(st.sampled_from(["+", "\uff0b", "\u202a+", "\ufe62"]))
    assert typed_phone_number(plus + data.draw(spelled(digits))) == f"+{digits}"


@given(st.data(), st.text("abcXYZ019_-", min_size=7, max_size=43))
def test_a_long_code_keeps_its_hyphens(data: st.DataObject, code: str) -> None:
    assume(not code.replace("-", "").isdecimal())
    shown = "".join(
        data.draw(INVISIBLE) + (data.draw(DASH.filter(bool)) if char == "-" else char) + data.draw(SPACE)
        for char in code
    )
    assert typed_code(shown) == code


@given(st.data(), st.from_regex(r"[a-z]([.+_-]?[a-z0-9]){1,8}", fullmatch=True))
def test_any_spelling_of_an_address_is_the_address(data: st.DataObject, local: str) -> None:
    def widened(char: str) -> str:
        wide = chr(ord(char) + 0xFEE0)
        dashes = ["\u2010", "\u2011", "\u2212"] if char == "-" else []
        return data.draw(INVISIBLE) + data.draw(st.sampled_from([char, wide, *dashes]))

    edge = "\u00a0\u3000\u2009 \ufeff"
    shown = edge + "".join(map(widened, f"{local}@example.com")) + edge

    assert typed_address(shown) == f"{local}@example.com"
    assert normalized(shown, development=False) == f"{local}@example.com"


@given(ANY)
def test_what_is_normalized_is_normal(text: str) -> None:
    for normalize_text in (typed_code, typed_phone_number, typed_address):
        found = normalize_text(text)
        assert not any(category(char) == "Cf" for char in found)
        assert not any(char.isspace() for char in found) or normalize_text is typed_address
        assert found == "" or normalize("NFKC", found.replace(" ", "")) == found.replace(" ", "")


@given(WORD, WORD)
def test_an_address_has_one_normal_form(local: str, domain: str) -> None:
    found = normalized(f"{local}@{domain}.com", development=False)
    assert found is None or normalized(found, development=False) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ada@ example . com", "ada@example.com"),
        ("ada. lovelace @example.com", "ada.lovelace@example.com"),
        ("ada lovelace@example.com", "ada lovelace@example.com"),
        ("ada\nlovelace@example.com", "ada\nlovelace@example.com"),
        ("not an address", "notanaddress"),
    ],
)
def test_blanks_remain_where_they_may_stand_for_something(text: str, found: str) -> None:
    assert typed_address(text) == found
    assert (normalized(text, development=False) is None) is (" " in found or "\n" in found or "@" not in found)


def test_a_blank_in_a_query_is_a_plus() -> None:
    assert plus_for_blank("ada news@example.com") == "ada+news@example.com"
    assert plus_for_blank(" ada+news@example.com\n") == "ada+news@example.com"
