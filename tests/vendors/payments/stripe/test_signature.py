"""Signatures of Stripe's webhooks. The official package makes them."""

import stripe
from hypothesis import given
from hypothesis import strategies as st

from vendors.payments.stripe.signature import is_signed

BODY = b'{"id": "evt_1", "object": "event"}'
NOW = 1_800_000_000


def signed(body: bytes = BODY, *, secret: str = "whsec_a", t: int = NOW) -> str:
    signature = stripe.WebhookSignature._compute_signature(f"{t}.{body.decode()}", secret)
    return f"t={t},v1={signature}"


def accepts(header: str, body: bytes = BODY, *, secrets: tuple[str, ...] = ("whsec_a",), now: float = NOW) -> bool:
    return is_signed(header, body, secrets=secrets, now=now)


def test_signature_of_the_official_package_is_accepted() -> None:
    assert accepts(signed())


def test_any_of_several_secrets_may_have_signed() -> None:
    assert accepts(signed(secret="whsec_b"), secrets=("whsec_a", "whsec_b"))
    assert not accepts(signed(secret="whsec_c"), secrets=("whsec_a", "whsec_b"))
    assert not accepts(signed(secret=""), secrets=("",))
    assert not accepts(signed(), secrets=())


def test_one_of_several_signatures_is_enough() -> None:
    _, _, right = signed().partition(",")
    assert accepts(f"t={NOW},v1={'0' * 64},{right},v0=1")
    assert not accepts(f"t={NOW},v0={right.removeprefix('v1=')}")


def test_time_must_be_within_five_minutes_in_both_directions() -> None:
    for t in (NOW - 300, NOW + 300):
        assert accepts(signed(t=t))
    for t in (NOW - 301, NOW + 301):
        assert not accepts(signed(t=t))


def test_another_body_or_time_is_refused() -> None:
    assert not accepts(signed(), BODY + b" ")
    header = signed()
    assert not accepts(header.replace(f"t={NOW}", f"t={NOW + 1}"))
    assert not accepts(f"t={NOW - 1},{header}")


def test_malformed_headers_are_refused() -> None:
    right = signed().partition("v1=")[2]
    for header in (
        "",
        "t=",
        "v1=",
        f"v1={right}",
        f"t=x,v1={right}",
        f"t=-1,v1={right}",
        f"t=१,v1={right}",
        "t=1" * 99,
    ):
        assert not accepts(header)


@given(st.text(max_size=200), st.binary(max_size=50))
def test_no_text_is_taken_for_a_signature(header: str, body: bytes) -> None:
    assert not accepts(header, body)


@given(st.binary(max_size=200), st.integers(-300, 300))
def test_whatever_is_signed_is_accepted_within_the_tolerance(body: bytes, ahead_s: int) -> None:
    text = body.decode("latin-1").encode()
    assert accepts(signed(text, t=NOW + ahead_s), text)
