"""Text and audio are decoded incrementally, whatever the pieces."""

import base64
from collections.abc import Callable, Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.decoders import Base64Decoder, Utf8Decoder
from streams.wire.errors import InvalidParameter
from tests.streams.pieces import by_byte, split

HINT = "invalid_parameter: audio is not valid base64 (chunks must contain multiples of 3 bytes)"
NOT_BASE64 = "invalid_parameter: audio is not valid base64"


def audio(pieces: Iterable[bytes]) -> bytes | str:
    """Return the decoded content, or the error."""
    decoder = Base64Decoder()
    try:
        return b"".join([decoder.feed(piece) for piece in pieces]) + decoder.finish()
    except InvalidParameter as error:
        return str(error)


def text(pieces: Iterable[bytes]) -> str:
    decoder = Utf8Decoder()
    try:
        return "".join([decoder.feed(piece) for piece in pieces]) + decoder.finish()
    except InvalidParameter as error:
        return f"refused: {error}"


CUTS = st.lists(st.integers(0, 80), max_size=6)
ENCODERS = st.sampled_from([base64.b64encode, base64.urlsafe_b64encode])


@given(st.binary(max_size=50), ENCODERS, st.booleans(), CUTS)
def test_every_split_of_base64_gives_the_same_bytes(
    raw: bytes, encode: Callable[[bytes], bytes], padded: bool, at: list[int]
):
    encoded = encode(raw) if padded else encode(raw).rstrip(b"=")

    assert audio(split(encoded, at)) == audio(by_byte(encoded)) == audio([encoded]) == raw


@given(st.lists(st.binary(max_size=9), max_size=6), ENCODERS, CUTS)
def test_separately_encoded_pieces_are_joined_at_their_padding(
    pieces: list[bytes], encode: Callable[[bytes], bytes], at: list[int]
):
    encoded = b"".join(map(encode, pieces))

    assert audio(split(encoded, at)) == audio(map(encode, pieces)) == audio(by_byte(encoded)) == b"".join(pieces)


@given(
    st.binary(max_size=50),
    st.lists(st.tuples(st.integers(0, 80), st.sampled_from(b" \t\r\n\f\v")), max_size=9),
    CUTS,
)
def test_white_space_is_skipped_everywhere(raw: bytes, blanks: list[tuple[int, int]], at: list[int]):
    encoded = bytearray(base64.b64encode(raw))
    for position, blank in blanks:
        encoded.insert(position, blank)

    assert audio(split(bytes(encoded), at)) == audio(by_byte(bytes(encoded))) == raw


@given(st.text("QUJD-_+/=é !\n", max_size=14).map(str.encode), CUTS)
@example(b"Q===", [1])
@example(b"QQ= =", [3])
@example(b"QQ=QUJD", [3])
@example(b"QUJD=", [4])
def test_malformed_input_fails_the_same_way_for_every_split(raw: bytes, at: list[int]):
    assert audio(split(raw, at)) == audio(by_byte(raw)) == audio([raw])


@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [
        (b"QUI=QUI=", b"ABAB"),
        (b"QQ==QUJD", b"AABC"),
        (b"QQ=QUJD", b"AABC"),
        (b"Q Q = = Q Q", b"AA"),
        (b"-_-_+/+/", bytes.fromhex("fbffbf") * 2),
        (b"", b""),
        (b"\n\n", b""),
        (b"QUI", b"AB"),
        (b"QQ", b"A"),
        (b"QQ=", b"A"),
    ],
)
def test_padding_may_be_in_the_middle_or_be_missing(encoded: bytes, decoded: bytes):
    assert audio([encoded]) == audio(by_byte(encoded)) == decoded


@pytest.mark.parametrize(
    ("encoded", "refusal"),
    [
        (b"Q", HINT),
        (b"QUJDQ", HINT),
        (b"QUI=Q\n", HINT),
        (b"=", NOT_BASE64),
        (b"Q=", NOT_BASE64),
        (b"QUJD=", NOT_BASE64),
        (b"QUI==", NOT_BASE64),
        (b"QQ===", NOT_BASE64),
        (b"QQ=QUJD=", NOT_BASE64),
        (b"QUJD!", NOT_BASE64),
        (b"QU\0JD", NOT_BASE64),
        (b"Q\xc3\xa9JD", NOT_BASE64),
        (b"data:audio/wav;base64,QUJD", NOT_BASE64),
    ],
)
def test_invalid_base64_is_refused(encoded: bytes, refusal: str):
    assert audio([encoded]) == audio(by_byte(encoded)) == refusal


@given(st.binary(max_size=40))
def test_bytes_are_yielded_once_their_group_is_complete(raw: bytes):
    decoder = Base64Decoder()
    decoded = b""

    for count, byte in enumerate(base64.b64encode(raw).rstrip(b"="), 1):
        decoded += decoder.feed(bytes([byte]))
        assert decoded == raw[: count // 4 * 3]
        assert decoder.unaligned == (count % 4 in {2, 3})

    assert decoded + decoder.finish() == raw


def test_padding_makes_the_end_of_a_chunk_aligned():
    decoder = Base64Decoder()

    states = [(decoder.feed(piece), decoder.unaligned)[1] for piece in (b"Q", b"U", b"I", b"=", b"QUJD", b"QQ\n")]

    assert states == [False, True, True, False, False, True]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), CUTS)
def test_every_split_of_text_gives_the_same_text(said: str, at: list[int]):
    raw = said.encode()

    assert text(split(raw, at)) == text(by_byte(raw)) == said


@given(st.binary(max_size=12) | st.text(max_size=4).map(lambda said: said.encode()[:-1] + b"\0"), CUTS)
@example(b"\xed\xa0\x80", [1])
@example(b"\xc0\x80", [1])
def test_any_split_of_bytes_is_decoded_as_python_does(raw: bytes, at: list[int]):
    try:
        expected = raw.decode()
    except UnicodeDecodeError:
        expected = None

    for pieces in (split(raw, at), by_byte(raw), [raw]):
        seen = text(pieces)
        if expected is not None and "\0" not in expected:
            assert seen == expected
        elif b"\0" not in raw:
            assert seen == "refused: invalid_parameter: text is not valid UTF-8"
        elif expected is not None:
            assert seen == "refused: invalid_parameter: text must not contain the character U+0000"
        else:
            assert seen.startswith("refused: invalid_parameter: text ")


def test_text_is_yielded_once_its_characters_are_complete():
    decoder = Utf8Decoder()

    assert [decoder.feed(bytes([byte])) for byte in "aé😀".encode()] == ["a", "", "é", "", "", "", "😀"]


def test_text_that_ends_within_a_character_is_refused():
    assert text(["é".encode()[:1]]) == "refused: invalid_parameter: text is not valid UTF-8"
