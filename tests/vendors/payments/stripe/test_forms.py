"""Nested fields survive the encoding of our client and the decoding of the sandbox, with Stripe's names."""

from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendors.payments.stripe.forms import form_encoded
from vendors.sandbox.payments.stripe.forms import decoded

NAMES = st.text(st.characters(exclude_characters="[]", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: not name.isdecimal()
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
OBJECTS = st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3)
VALUES = st.one_of(
    TEXTS,
    st.lists(TEXTS, min_size=1, max_size=3),
    OBJECTS,
    st.lists(OBJECTS, min_size=1, max_size=3),
    st.dictionaries(NAMES, OBJECTS, min_size=1, max_size=2),
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_encoded_is_decoded_to_the_same(fields: dict[str, Any]) -> None:
    assert decoded(form_encoded(fields)) == fields


@pytest.mark.parametrize(
    ("fields", "pairs"),
    [
        ({"metadata": {"uid": "u 1"}}, [("metadata[uid]", "u 1")]),
        ({"items": [{"price": "p"}, {"price": "q"}]}, [("items[0][price]", "p"), ("items[1][price]", "q")]),
        ({"expand": ["latest_invoice"]}, [("expand[]", "latest_invoice")]),
        (
            {"confirm": True, "prorate": False, "amount": 199},
            [("confirm", "true"), ("prorate", "false"), ("amount", "199")],
        ),
        ({"email": None, "name": ""}, [("name", "")]),
    ],
)
def test_fields_have_the_names_of_the_platform(fields: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    assert parse_qsl(form_encoded(fields), keep_blank_values=True) == pairs


@given(st.text(max_size=60))
def test_any_form_is_decoded_or_refused(text: str) -> None:
    try:
        decoded(text)
    except ValueError:
        return
