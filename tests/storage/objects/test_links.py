"""A link gives access to one file for one day."""

import time
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.objects import LINK_S, Links

KEY = "conversation/0198c0de/1/0.mp3"
NOW = 1_900_000_000
texts = st.text(st.characters(codec=None), max_size=80)


class Clock:
    def __init__(self) -> None:
        self.now = float(NOW)

    def __call__(self) -> float:
        return self.now


def parts_of(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    return parts.path.removeprefix("/files/"), query["e"][0], query["s"][0]


def test_link_names_its_file_below_the_public_address():
    url = Links(b"secret", "https://voice.example.com/").url(KEY)

    assert url.startswith(f"https://voice.example.com/files/{KEY}?e=")


def test_a_link_is_valid_for_a_day():
    clock = Clock()
    links = Links(b"secret", "http://h", clock=clock)
    link = parts_of(links.url(KEY))

    assert links.left_s(*link) == LINK_S == 86_400
    clock.now += LINK_S - 1
    assert links.left_s(*link) == 1
    clock.now += 1
    assert links.left_s(*link) is None


def test_link_signed_with_another_secret_is_invalid():
    link = parts_of(Links(b"another", "http://h").url(KEY))

    assert Links(b"secret", "http://h").left_s(*link) is None


@pytest.mark.parametrize("other", ["conversation/0198c0de/1/1.mp3", f"{KEY}\n", "", "../x.mp3"])
def test_link_is_invalid_for_any_other_file(other: str):
    links = Links(b"secret", "http://h")
    _, expiry, signature = parts_of(links.url(KEY))

    assert links.left_s(other, expiry, signature) is None


@given(expiry=texts, signature=texts)
def test_link_that_was_altered_is_invalid(expiry: str, signature: str):
    links = Links(b"secret", "http://h", clock=lambda: NOW)
    key, right_expiry, right_signature = parts_of(links.url(KEY))

    assert links.left_s(key, expiry, signature) is None
    assert links.left_s(key, right_expiry, signature) is None or signature == right_signature
    assert links.left_s(key, expiry, right_signature) is None or expiry == right_expiry


def test_the_expiry_of_a_link_cannot_be_moved_into_its_key():
    links = Links(b"secret", "http://h", clock=lambda: NOW)
    key, expiry, signature = parts_of(links.url(KEY))

    assert links.left_s(f"{expiry[-1]}\n{key}", expiry[:-1], signature) is None


def test_links_are_created_without_a_call_to_the_store():
    links = Links(b"secret", "http://h")
    start = time.process_time()
    for _ in range(1000):
        links.url(KEY)

    assert time.process_time() - start < 0.5
