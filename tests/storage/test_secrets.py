"""A ciphertext is decrypted only for its field, with its key and unaltered."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.secrets import DecryptionFailed, Keyring

OLD, NEW = "0123456789abcdef" * 4, "fedcba9876543210" * 4
KEYRING = Keyring.from_hex(OLD)
FIELD = "default/vendor_accounts/main/api_key"


@given(plain=st.text(), field=st.text())
def test_a_text_is_decrypted_for_its_field(plain, field):
    assert KEYRING.decrypt(KEYRING.encrypt(plain, aad=field), aad=field) == plain


@given(plain=st.text(min_size=8), field=st.text())
def test_ciphertexts_reveal_nothing_and_are_unique(plain, field):
    encrypted = KEYRING.encrypt(plain, aad=field)
    assert plain.encode() not in base64.urlsafe_b64decode(encrypted)
    assert encrypted != KEYRING.encrypt(plain, aad=field)


def test_a_ciphertext_moved_to_another_field_is_refused():
    encrypted = KEYRING.encrypt("sk-1", aad=FIELD)
    with pytest.raises(DecryptionFailed):
        KEYRING.decrypt(encrypted, aad="other/vendor_accounts/main/api_key")


@given(at=st.integers(min_value=0), flip=st.integers(min_value=1, max_value=255))
def test_a_ciphertext_altered_anywhere_is_refused(at, flip):
    raw = bytearray(base64.urlsafe_b64decode(KEYRING.encrypt("sk-1", aad=FIELD)))
    raw[at % len(raw)] ^= flip
    with pytest.raises(DecryptionFailed):
        KEYRING.decrypt(base64.urlsafe_b64encode(raw).decode(), aad=FIELD)


@given(text=st.text())
def test_any_other_text_is_refused(text):
    with pytest.raises(DecryptionFailed):
        KEYRING.decrypt(text, aad=FIELD)


def test_a_new_first_key_decrypts_old_texts_and_encrypts_new_ones():
    old = KEYRING.encrypt("sk-1", aad=FIELD)
    both = Keyring.from_hex(f"{NEW},{OLD}")
    assert both.decrypt(old, aad=FIELD) == "sk-1"
    new = both.encrypt("sk-2", aad=FIELD)
    assert Keyring.from_hex(NEW).decrypt(new, aad=FIELD) == "sk-2"
    with pytest.raises(DecryptionFailed, match="unknown key"):
        KEYRING.decrypt(new, aad=FIELD)


def test_each_purpose_has_a_separate_stable_key():
    links, codes = KEYRING.derive("links"), KEYRING.derive("codes")
    assert len(links) == len(codes) == 32
    assert links != codes
    assert Keyring.from_hex(OLD).derive("links") == links
    assert Keyring.from_hex(NEW).derive("links") != links


@pytest.mark.parametrize("text", ["", "00", "zz" * 32, f"{OLD},"])
def test_malformed_keys_are_refused(text):
    with pytest.raises(ValueError, match=r"32 bytes|hexadecimal"):
        Keyring.from_hex(text)
