"""Sign in with Apple beyond its id tokens: codes, the signed secret of our app, and tokens that are revoked."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from streams.wire.errors import ConfigInvalid
from tests.calendar.clock import utc_now
from tests.vendors.signin.sandbox_people import APP, APPLE
from vendors.errors import Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.server import Running
from vendors.signin.apple import Apple
from vendors.signin.protocols import Profile, ProofRefused


def apple(http: VendorHttp, sandbox: Running, **config: Any) -> Apple:
    client = APPLE.client(http, sandbox, **config)
    assert isinstance(client, Apple)
    return client


def calls(sandbox: Running, stage: str) -> list[dict[str, Any]]:
    return [entry.asked for entry in sandbox.bill.since(0) if entry.stage == stage]


async def test_a_code_is_redeemed_for_the_tokens_of_the_app_that_got_it(http: VendorHttp, sandbox: Running):
    config = {"redirect_uri": "https://app.test/back", "client_id": "first-app"}
    found = await apple(http, sandbox, **config).verify(await APPLE.proof(sandbox), now=utc_now())
    web = await apple(http, sandbox, **config).verify(await APPLE.proof(sandbox, app="first-app"), now=utc_now())

    assert found.refresh_token.startswith("refresh-")
    assert found.access_token
    assert 0 <= found.expiration_date - utc_now().timestamp() - 7200 + 5 <= 10
    assert web.refresh_token
    assert calls(sandbox, "token") == [
        {"client_id": APP, "redirect_uri": None},
        {"client_id": "first-app", "redirect_uri": "https://app.test/back"},
    ]


@pytest.mark.parametrize("without", ["code", "private_key"])
async def test_codes_are_optional(http: VendorHttp, sandbox: Running, without: str):
    proof = await APPLE.proof(sandbox)
    config: dict[str, Any] = {"private_key": SecretStr("")} if without == "private_key" else {}
    client = apple(http, sandbox, **config)

    found = await client.verify(replace(proof, code="") if without == "code" else proof, now=utc_now())

    assert (found.social_id, found.refresh_token) == (APPLE.subject, "")
    assert not calls(sandbox, "token")


async def test_a_code_of_somebody_else_is_refused(http: VendorHttp, sandbox: Running):
    ours, theirs = await APPLE.proof(sandbox), await APPLE.proof(sandbox, subject="somebody-else")

    with pytest.raises(ProofRefused, match="another id"):
        await apple(http, sandbox).verify(replace(ours, code=theirs.code), now=utc_now())


@pytest.mark.parametrize("code", ["unknown", "with space", "used", "expired"])
async def test_a_code_that_apple_does_not_accept_is_refused(http: VendorHttp, sandbox: Running, code: str):
    client = apple(http, sandbox)
    proof = await APPLE.proof(sandbox, age_s=301 if code == "expired" else 0)
    if code == "used":
        await client.verify(proof, now=utc_now())
    elif code != "expired":
        proof = replace(proof, code=code)

    with pytest.raises(ProofRefused):
        await client.verify(proof, now=utc_now())


@pytest.mark.parametrize("fields", [{"team_id": "OTHERTEAM"}, {"key_id": "OTHERKEY"}])
async def test_a_secret_that_apple_does_not_accept_is_the_operators_fault(
    http: VendorHttp, sandbox: Running, fields: dict[str, Any]
):
    with pytest.raises(ConfigInvalid, match=r"sign_in ios_vendor_id: .*invalid_client"):
        await apple(http, sandbox, **fields).verify(await APPLE.proof(sandbox), now=utc_now())


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"private_key": SecretStr("no key")}, "private_key"),
        ({"team_id": ""}, "team_id"),
        ({"key_id": ""}, "key_id"),
    ],
)
async def test_an_insufficient_config_is_invalid(
    http: VendorHttp, sandbox: Running, fields: dict[str, Any], cause: str
):
    with pytest.raises(ConfigInvalid, match=f"sign_in ios_vendor_id: {cause}"):
        apple(http, sandbox, **fields)


async def test_a_failed_exchange_is_the_fault_of_apple_and_sent_once(http: VendorHttp, sandbox: Running):
    client = apple(http, sandbox)
    await client.verify(await APPLE.proof(sandbox), now=utc_now())
    sandbox.bill.clear()
    sandbox.sandbox.switches["apple"] = KeyOptions(fault=Fault.SERVER_ERROR)

    with pytest.raises(VendorError):
        await client.verify(await APPLE.proof(sandbox), now=utc_now())
    assert [entry.stage for entry in sandbox.bill.since(0)] == ["token"]


async def test_a_token_is_revoked_for_each_of_our_apps(http: VendorHttp, sandbox: Running):
    await apple(http, sandbox).revoke("refresh-1")

    assert calls(sandbox, "revoke") == [
        {"client_id": "first-app", "token": "refresh-1"},
        {"client_id": APP, "token": "refresh-1"},
    ]


async def test_a_revocation_that_apple_refuses_fails(http: VendorHttp, sandbox: Running):
    with pytest.raises(ConfigInvalid, match="private_key"):
        await apple(http, sandbox, private_key=SecretStr("")).revoke("refresh-1")
    with pytest.raises(Refused, match="invalid_client") as refused:
        await apple(http, sandbox, team_id="OTHERTEAM").revoke("refresh-1")
    assert "refresh-1" not in str(refused.value)


@pytest.mark.parametrize(
    ("verified", "email"),
    [("true", "mei@example.test"), (True, "mei@example.test"), ("false", ""), (False, ""), ([], ""), (None, "")],
)
async def test_an_address_is_shown_if_apple_has_verified_it(
    http: VendorHttp, sandbox: Running, verified: object, email: str
):
    proof = await APPLE.proof(sandbox, claims={"email_verified": verified})
    client = apple(http, sandbox)

    found = await client.verify(proof, now=utc_now())

    assert found.profile == (Profile(email=email) if email else None)
    assert await client.profile(found) == found.profile
