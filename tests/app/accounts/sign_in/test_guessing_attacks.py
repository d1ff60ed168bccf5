"""Attacks on accounts by guessing: how many guesses get an answer, and what its owner notices (§4.1)."""

import asyncio
import time
from itertools import count

import pytest

from storage.accounts.codes import LOGIN_EMAIL, PHONE, SIGN_UP_EMAIL
from tests.app.accounts.sign_in.guessing import HOME, LOGIN, SIGNUP, Calls, by_code, by_phone, new_email, other

PASSWORD, WRONG = "correct horse battery", "staple gun at dawn"
_GIVE_UP = 150
NUMBERS = count(4_915_100_000_000)


def by_password(email: str, password: str = WRONG) -> dict[str, object]:
    return {"email_password": {"email": email, "password": password}}


async def until_refused(calls: Calls, kind: str, *, addresses: list[str], accounts: int) -> int:
    """Guess at each of `accounts` in turn, from each address in turn. Return how many guesses got an answer."""
    emails, numbers = [new_email() for _ in range(accounts)], [f"+{next(NUMBERS)}" for _ in range(accounts)]
    if kind == "phone":
        proofs = [by_phone(number, other(await calls.code(PHONE, number))) for number in numbers]
    elif kind == "code":
        proofs = [by_code(email, other(await calls.code(LOGIN_EMAIL, email))) for email in emails]
    else:
        proofs = [by_password(email) for email in emails]
    for tried in range(_GIVE_UP):
        address = addresses[tried % len(addresses)]
        status, reply = await calls.post(LOGIN, proofs[tried % accounts], address)
        if status == 429:
            assert reply["error"]["error_type"] == "api_rate_limit"
            return tried
    return _GIVE_UP


ONE, IN_A_24 = ["203.0.113.9"], [f"203.0.113.{number}" for number in range(1, 255)]
IN_A_64 = [f"2001:db8::{number:x}" for number in range(1, 255)]
NETWORKS = [f"203.0.{number}.9" for number in range(_GIVE_UP)]


@pytest.mark.parametrize(
    ("kind", "addresses", "accounts", "answered"),
    [
        pytest.param("password", ONE, 1, 10, id="one-address-at-a-password"),
        pytest.param("code", IN_A_24, 1, 10, id="a-24-at-a-code"),
        pytest.param("phone", IN_A_64, 1, 10, id="a-64-at-a-phone"),
        pytest.param("code", ONE, 20, 100, id="one-address-at-many-codes"),
        pytest.param("password", IN_A_24, 1, 10, id="a-24-at-a-password", marks=pytest.mark.soak),
        pytest.param("password", IN_A_64, 1, 10, id="a-64-at-a-password", marks=pytest.mark.soak),
        pytest.param("code", IN_A_64, 1, 10, id="a-64-at-a-code", marks=pytest.mark.soak),
        pytest.param("phone", IN_A_24, 1, 10, id="a-24-at-a-phone", marks=pytest.mark.soak),
        pytest.param("password", ONE, 20, 100, id="one-address-at-many-passwords", marks=pytest.mark.soak),
        pytest.param("phone", ONE, 20, 100, id="one-address-at-many-phones", marks=pytest.mark.soak),
        pytest.param("password", NETWORKS, 1, 100, id="many-networks-at-a-password", marks=pytest.mark.soak),
        pytest.param("code", NETWORKS, 1, 100, id="many-networks-at-a-code", marks=pytest.mark.soak),
        pytest.param("phone", NETWORKS, 1, 100, id="many-networks-at-a-phone", marks=pytest.mark.soak),
    ],
)
async def test_so_many_guesses_get_an_answer(
    calls: Calls, kind: str, addresses: list[str], accounts: int, answered: int
):
    began_s = time.monotonic()
    found = await until_refused(calls, kind, addresses=addresses, accounts=accounts)
    # The rates leak: 100 in 15 minutes allow another guess after 9 s.
    assert answered <= found <= answered + (time.monotonic() - began_s) / 9


async def test_an_owner_logs_in_at_once_from_home_while_many_networks_guess(calls: Calls):
    """120 guesses from 60 networks: what arrives in a minute when somebody guesses twice a second."""
    email = await owner(calls)
    answers: list[tuple[int, str]] = []

    async def guess(address: str) -> None:
        code = other(await calls.code(LOGIN_EMAIL, email))
        for body in (by_password(email), by_code(email, code)):
            status, reply = await calls.post(LOGIN, body, address)
            answers.append((status, reply["error"]["message"]))

    for wave in range(3):
        guesses = [guess(f"203.{wave}.{number}.9") for number in range(20)]
        by_owner, *_ = await asyncio.gather(calls.status(LOGIN, by_password(email, PASSWORD), HOME), *guesses)
        assert by_owner == 200, "the owner's password is accepted in the middle of a wave"
        code = by_code(email, await calls.code(LOGIN_EMAIL, email))
        assert await calls.status(LOGIN, code, HOME) == 200, "so is the owner's first code after it"
    answered = [text for status, text in answers if status == 400]
    compared = [text for text in answered if text.endswith("verify_code is wrong")]
    assert (len(answers), len(compared)) == (120, 20)
    assert 100 <= len(answered) <= 104
    stranger = by_code(email, await calls.code(LOGIN_EMAIL, email))
    assert await calls.status(LOGIN, stranger, "192.0.2.1") == 429
    assert await calls.status(LOGIN, by_password(email, PASSWORD), HOME) == 200


async def owner(calls: Calls) -> str:
    """Sign up from home, with a password and a proven address. Return the address."""
    await calls.configure("email", mail_accounts=["inbox"], code_login=True, sign_up_verification=True)
    email = new_email()
    sign_up = {"email": email, "password": PASSWORD, "verify_code": await calls.code(SIGN_UP_EMAIL, email)}
    assert await calls.status(SIGNUP, {"email_password": sign_up}) == 200
    return email
