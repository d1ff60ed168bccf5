"""Objects that strict parsers refuse: what is read of them, and what never is."""

from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import dumps, loads
from streams.wire.damaged import json_object, leading_members

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUE = st.one_of(TEXT, st.integers(-(2**63), 2**64 - 1), st.booleans(), st.none(), st.lists(TEXT, max_size=2))
OBJECT = st.dictionaries(st.text("abcdefg", min_size=1, max_size=4), VALUE, max_size=5)


@given(OBJECT)
def test_a_valid_object_is_read_as_it_is(value: dict[str, object]):
    assert json_object(dumps(value)) == json_object(b"\xef\xbb\xbf " + dumps(value)) == value


@given(OBJECT, st.text("\x01\t\n\x1f\ud83d\udc00", min_size=1, max_size=3))
def test_control_characters_and_surrogates_stay_in_their_text(value: dict[str, object], damage: str):
    raw = dumps({**value, "name": "Mei?"}).replace(b'Mei?"', b'Mei%b"' % damage.encode(errors="surrogatepass"))

    found = json_object(raw)

    assert found is not None
    assert str(found.pop("name"))[:3] == "Mei"
    assert found == {name: value[name] for name in value if name != "name"}


@given(st.binary(max_size=60), st.binary(max_size=3))
def test_nothing_else_is_raised_for_whatever_is_sent(raw: bytes, more: bytes):
    for sent in (raw, b"{" + raw, b'{"a":"' + raw + b'"' + more + b"}"):
        json_object(sent)
        leading_members(sent)


@given(OBJECT, st.data())
def test_a_cut_object_has_only_members_that_were_whole(value: dict[str, object], data: st.DataObject):
    raw = dumps(value)
    cut = data.draw(st.integers(1, len(raw)))

    found = leading_members(raw[:cut])

    assert found is not None
    assert found.items() <= value.items()


@given(name=TEXT.map('x"{}'.format), id_first=st.booleans())
def test_no_text_of_a_profile_becomes_an_id(*, name: str, id_first: bool):
    members = ['"userId":"U1"', '"name":"' + name + '","userId":"U2","x":"' + name + '"']
    raw = ("{" + ",".join(members if id_first else members[::-1]) + "}").encode()
    try:
        loads(raw)
    except ValueError:
        found = leading_members(raw)
        assert found is None or "userId" not in found


def test_deep_nesting_is_no_object():
    assert json_object(b'{"a":' * 40 + b'"\x01"' + b"}" * 40) is None
    assert leading_members(b'{"a":' * 100_000) == {}
    assert json_object(b'{"a":"\x01","b":' + b"9" * 5_000 + b"}") is None
