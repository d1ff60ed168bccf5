"""Tokens, nonces and dates of sign-in platforms, in the sizes and forms in which clients really have them."""

from hashlib import sha256
from uuid import uuid4

import pytest

from tests.app.accounts.people import SOCIAL, ask, enter, error_type, login, me
from tests.app.accounts.platforms import proof
from tests.app.sandbox_server import module_server, server, testbed
from tests.running.servers import Server

__all__ = ["module_server", "server", "testbed"]


async def account(server: Server, session: dict[str, str]) -> dict[str, object]:
    [found] = (await me(server, session))["social_accounts"]
    return found


@pytest.mark.parametrize("date", [-1, 2**63 - 1, 10**30, None])
async def test_any_expiration_date_of_a_client_is_accepted(server, date):
    body = await proof(server, "social_network_a", str(uuid4().int)[:15])
    body["social_network_a"]["expiration_date"] = date
    assert (await login(server, body))[0] == 200


@pytest.mark.parametrize("date", ["1800000000", 1800000000.5, True])
async def test_an_expiration_date_that_is_no_integer_is_an_invalid_parameter(server, date):
    body = await proof(server, "social_network_a")
    body["social_network_a"]["expiration_date"] = date
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (400, "invalid_parameter")
    assert "social_network_a.expiration_date" in reply["error"]["message"]


@pytest.mark.parametrize("date", [-1, 2**63, True])
async def test_an_impossible_expiration_date_of_a_platform_is_unknown(server, date):
    body = await proof(server, "social_network_a", str(uuid4().int)[:15], extra={"expires_at": date})
    _, session = await enter(server, body)
    assert "expiration_date" not in await account(server, session)


async def test_access_tokens_have_up_to_16_kib(server):
    """Tokens of work accounts name the groups of their user."""
    long = await proof(server, "software_vendor_id", str(uuid4()), kind="work", claims={"groups": "g" * 10_000})
    token = long["software_vendor_id"]["access_token"]
    assert 13_000 < len(token) < 16 * 1024
    _, session = await enter(server, long)
    assert (await account(server, session))["access_token"] == token
    status, reply = await login(server, {"software_vendor_id": {"access_token": token + "x" * 16 * 1024}})
    assert (status, error_type(reply)) == (400, "invalid_parameter")


async def test_refresh_tokens_have_up_to_16_kib(server):
    refresh_token = "r" * 16 * 1024
    body = await proof(server, "im_network_b", extra={"refresh_token": refresh_token})
    _, session = await enter(server, body)
    assert (await account(server, session))["refresh_token"] == refresh_token


async def test_a_longer_refresh_token_is_an_error_that_says_so(server):
    body = await proof(server, "im_network_b", extra={"refresh_token": "r" * (16 * 1024 + 1)})
    status, reply = await login(server, body)
    assert (status, reply["error"]["message"]) == (
        502,
        "gateway: im_network_b sent a refresh_token of more than 16384 characters",
    )


@pytest.mark.parametrize(
    "platform", ["ios_vendor_id", "search_vendor_id", "social_network_a", "software_vendor_id"]
)
async def test_a_nonce_may_be_in_a_token_as_its_hash(server, platform):
    nonce = uuid4().hex
    digest = sha256(nonce.encode()).hexdigest()
    limited = {"limited": True} if platform == "social_network_a" else {}
    for claim in (nonce, digest, digest.upper()):
        body = await proof(server, platform, str(uuid4().int)[:15], nonce=claim, **limited)
        body[platform]["nonce"] = nonce
        assert (await login(server, body))[0] == 200, claim
    for sent in (digest, "another", "\udcff", "é"):
        body = await proof(server, platform, nonce=sha256(digest.encode()).hexdigest()[:-1], **limited)
        body[platform]["nonce"] = sent
        async with server.http.post(f"{server.url}/bp/user/login", json=body) as response:
            assert response.status == 400
    wrong = await proof(server, platform, nonce=digest, **limited)
    wrong[platform]["nonce"] = f"{nonce}x"
    status, reply = await login(server, wrong)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")


async def test_the_date_of_a_renewed_token_is_that_of_the_platform(server):
    subject = str(uuid4().int)[:15]
    _, session = await enter(server, await proof(server, "social_network_a", subject))
    again = await proof(server, "social_network_a", subject, extra={"expires_at": 2**64 - 1})
    again["social_network_a"]["expiration_date"] = -1
    path = f"{SOCIAL}/social_network_a/{subject}"
    status, reply = await ask(server, "PUT", path, json=again, headers=session)
    assert (status, reply["social_account"]["expiration_date"]) == (200, 0)
