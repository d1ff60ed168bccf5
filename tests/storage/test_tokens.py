"""The format of tokens: random bytes with a checksum."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from storage.tokens import LENGTH, digest, encode, is_token, new_token

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM = st.binary(min_size=32, max_size=32)


def number(text: str) -> int:
    value = 0
    for letter in text:
        value = value * 62 + ALPHABET.index(letter)
    return value


@given(RANDOM)
def test_a_token_contains_random_bytes_and_their_checksum(random: bytes):
    token = encode(random)
    assert len(token) == LENGTH
    assert token.startswith("st_")
    assert number(token[3:-6]).to_bytes(32) == random
    assert number(token[-6:]) == zlib.crc32(token[:-6].encode())
    assert is_token(token)


@given(RANDOM, st.integers(0, LENGTH - 1), st.sampled_from(ALPHABET))
def test_a_token_with_one_changed_letter_is_invalid(random: bytes, position: int, letter: str):
    token = encode(random)
    changed = token[:position] + letter + token[position + 1 :]
    assert is_token(changed) == (changed == token)


@given(st.text(max_size=60))
def test_other_text_is_not_a_token(text: str):
    assert not is_token(text)
    assert not is_token("st_" + text)


@given(RANDOM, st.text(alphabet=ALPHABET + "_- é\udc80", min_size=1, max_size=3))
def test_a_longer_or_shorter_text_is_not_a_token(random: bytes, more: str):
    token = encode(random)
    assert not is_token(token + more)
    assert not is_token(more + token)
    assert not is_token(token[:-1])


def test_tokens_differ_and_so_do_their_digests():
    tokens = {new_token() for _ in range(200)}
    assert len(tokens) == 200
    assert len({digest(token) for token in tokens}) == 200
