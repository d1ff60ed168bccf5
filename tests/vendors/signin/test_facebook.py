"""Facebook's access tokens: to which app they were issued, profiles, and longer tokens."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from streams.wire.errors import ConfigInvalid
from tests.calendar.clock import utc_now
from tests.vendors.signin.sandbox_people import APP, FACEBOOK, LIMITED, SECRET
from vendors.errors import VendorError
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.server import Running
from vendors.signin.facebook import Facebook
from vendors.signin.protocols import Profile, Proof, ProofRefused

PROFILE = Profile("Mei Lin", "https://pictures.test/mei.png")


def facebook(http: VendorHttp, sandbox: Running, **config: Any) -> Facebook:
    client = FACEBOOK.client(http, sandbox, **config)
    assert isinstance(client, Facebook)
    return client


async def refusal(http: VendorHttp, sandbox: Running, proof: Proof, **config: Any) -> str:
    with pytest.raises(ProofRefused) as refused:
        await facebook(http, sandbox, **config).verify(proof, now=utc_now())
    assert SECRET not in str(refused.value)
    assert not proof.access_token or proof.access_token not in str(refused.value)
    return refused.value.what


async def test_a_token_of_our_app_becomes_an_identity_with_a_profile(http: VendorHttp, sandbox: Running):
    client, proof = facebook(http, sandbox), await FACEBOOK.proof(sandbox)

    found = await client.verify(proof, now=utc_now())

    assert (found.social_id, found.access_token) == (FACEBOOK.subject, proof.access_token)
    assert abs(found.expiration_date - proof.expiration_date) <= 1
    assert await client.profile(found) == PROFILE


async def test_limited_login_has_its_profile_in_the_token(http: VendorHttp, sandbox: Running):
    client = facebook(http, sandbox)

    found = await client.verify(await LIMITED.proof(sandbox), now=utc_now())

    assert (found.social_id, found.access_token, found.profile) == (LIMITED.subject, "", PROFILE)
    assert await client.profile(found) == PROFILE


@pytest.mark.parametrize(
    ("issue", "cause"),
    [
        ({"app": "somebody-elses-app"}, "another app"),
        ({"subject": "somebody-else"}, "another id"),
        ({"expires_in": -1}, "error 190"),
        ({"extra": {"is_valid": False}}, "not valid"),
        ({"extra": {"is_valid": "true"}}, "not valid"),
        ({"extra": {"type": "PAGE"}}, "not that of a person"),
        ({"extra": {"user_id": None}}, "no valid user_id"),
    ],
    ids=str,
)
async def test_a_token_that_proves_nothing_is_refused(
    http: VendorHttp, sandbox: Running, issue: dict[str, Any], cause: str
):
    proof = replace(await FACEBOOK.proof(sandbox, **issue), id=FACEBOOK.subject)

    assert cause in await refusal(http, sandbox, proof)


@pytest.mark.parametrize("access_token", ["", "unknown", "two words", "EAA\r\nX: y", "x" * 5_000])
async def test_what_is_no_token_is_refused(http: VendorHttp, sandbox: Running, access_token: str):
    await refusal(http, sandbox, Proof(access_token=access_token))


async def test_a_secret_that_facebook_does_not_accept_is_the_operators_fault(http: VendorHttp, sandbox: Running):
    client = facebook(http, sandbox, client_secret=SecretStr("wrong"))

    with pytest.raises(ConfigInvalid, match=r"sign_in social_network_a: .*190"):
        await client.verify(await FACEBOOK.proof(sandbox), now=utc_now())


@pytest.mark.parametrize(
    "fault", [Fault.SERVER_ERROR, Fault.UNAVAILABLE, Fault.RATE_LIMITED, Fault.WRONG_CONTENT_TYPE]
)
async def test_a_failure_of_facebook_is_no_refusal(http: VendorHttp, sandbox: Running, fault: Fault):
    client, proof = facebook(http, sandbox), await FACEBOOK.proof(sandbox)
    found = await client.verify(proof, now=utc_now())
    sandbox.sandbox.switches["facebook"] = KeyOptions(fault=fault, retry_after_s=9)

    for call in (client.verify(proof, now=utc_now()), client.profile(found)):
        with pytest.raises(VendorError) as failed:
            await call
        assert SECRET not in str(failed.value)


async def test_a_profile_call_without_our_proof_fails(http: VendorHttp, sandbox: Running):
    found = await facebook(http, sandbox).verify(await FACEBOOK.proof(sandbox), now=utc_now())

    with pytest.raises(ProofRefused, match="error 100"):
        await facebook(http, sandbox, client_secret=SecretStr("another-secret")).profile(found)


@pytest.mark.parametrize("field", ["client_id", "client_secret", "audiences"])
async def test_an_insufficient_config_is_invalid(http: VendorHttp, sandbox: Running, field: str):
    empty: dict[str, Any] = {"client_id": "", "client_secret": SecretStr(""), "audiences": ("not-" + APP,)}
    with pytest.raises(ConfigInvalid, match=f"sign_in social_network_a: {field}"):
        facebook(http, sandbox, **{field: empty[field]})
