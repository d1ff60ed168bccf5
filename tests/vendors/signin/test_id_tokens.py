"""Id tokens of the sandbox's providers: which ones prove an identity."""

import re
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from streams.wire.errors import ConfigInvalid
from tests.calendar.clock import utc_now
from tests.sampling import paired
from tests.vendors.signin.sandbox_people import APP, APPLE, GOOGLE, ID_TOKENS, LIMITED, Provider
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.server import Running
from vendors.signin.protocols import Proof, ProofRefused

BY_NAME = {provider.name: provider for provider in ID_TOKENS}
every_provider = pytest.mark.parametrize("provider", ID_TOKENS, ids=lambda provider: provider.name)


def keys_fetched(sandbox: Running) -> int:
    return sum(entry.stage == "keys" for entry in sandbox.bill.since(0))


async def refusal(http: VendorHttp, sandbox: Running, provider: Provider, proof: Proof, **config: Any) -> str:
    """Return the reason of a refusal with what was seen."""
    with pytest.raises(ProofRefused) as refused:
        await provider.client(http, sandbox, **config).verify(proof, now=utc_now())
    return f"{refused.value.what}: {refused.value.seen}"


@every_provider
async def test_a_token_issued_to_one_of_our_apps_proves_its_subject(
    http: VendorHttp, sandbox: Running, provider: Provider
):
    found = await provider.client(http, sandbox).verify(await provider.proof(sandbox), now=utc_now())

    assert (found.social_id, found.trusted) == (provider.subject, True)


ANOTHER_APP = "issued to another app"
OF_OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "another app": ({"app": "somebody-elses-app"}, f"{ANOTHER_APP}: somebody-elses-app"),
    "another azp": ({"claims": {"aud": [APP, "another"], "azp": "another"}}, ANOTHER_APP),
    "evil issuer": ({"claims": {"iss": "https://evil.test"}}, "issuer: https://evil.test"),
    "evil tenant": ({"claims": {"iss": "https://login.microsoftonline.com/evil/v2.0"}}, "issuer: https://login"),
}
"""Tokens of other apps and issuers, of which each provider has its own, and why they prove nothing."""
FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "alg_none": ({"token_fault": "alg_none"}, "algorithm is not accepted: none"),
    "hs256": ({"token_fault": "hs256"}, "algorithm is not accepted: HS256"),
    "crit": ({"token_fault": "crit"}, "crit"),
    "jwk": ({"token_fault": "jwk"}, "jwk"),
    "unknown_key": ({"token_fault": "unknown_key"}, "unknown key"),
    "forged": ({"token_fault": "forged"}, "signature is wrong"),
    "expired": ({"lifetime_s": -61}, r"it expired \d+ s ago"),
}
"""Tokens that no provider has issued, or that have expired, and why they prove nothing."""
MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"claims": {"aud": ["somebody-elses-app", "another"]}}, f"{ANOTHER_APP}: .*somebody-elses-app', 'another"),
    ({"claims": {"aud": None}}, ANOTHER_APP),
    ({"claims": {"aud": {APP: 1}}}, ANOTHER_APP),
    ({"claims": {"iss": None}}, "issuer"),
    ({"claims": {"iss": ["https://accounts.google.com"]}}, "issuer"),
    ({"token_fault": "jku"}, "jku"),
    ({"token_fault": "x5u"}, "x5u"),
    ({"token_fault": "deep"}, "not a JSON Web Token"),
    ({"token_fault": "nested"}, "not a JSON Web Token"),
    ({"claims": {"padding": "x" * 16_384}}, "more than 16384"),
    ({"claims": {"exp": None}}, "exp"),
    ({"claims": {"exp": "2030-01-01"}}, "exp"),
    ({"claims": {"exp": True}}, "exp"),
    ({"claims": {"nbf": 4_000_000_000}}, "not valid yet"),
    ({"age_s": -120}, "not valid yet"),
    ({"claims": {"sub": None}}, "no valid sub"),
    ({"claims": {"sub": 7}}, "no valid sub"),
    ({"claims": {"sub": "a" * 257}}, "no valid sub"),
    ({"claims": {"sub": "a\nb"}}, "no valid sub"),
]


@pytest.mark.parametrize(("token", "name"), [*product(OF_OTHERS, BY_NAME), *paired([*FORGED], [*BY_NAME])])
async def test_a_token_that_proves_nothing_is_refused(http: VendorHttp, sandbox: Running, token: str, name: str):
    provider, (issue, cause) = BY_NAME[name], (OF_OTHERS | FORGED)[token]
    what = await refusal(http, sandbox, provider, await provider.proof(sandbox, **issue))

    assert re.search(cause, what), what


@pytest.mark.parametrize(("issue", "cause"), MALFORMED, ids=str)
async def test_a_token_with_unusable_claims_is_refused(
    http: VendorHttp, sandbox: Running, issue: dict[str, Any], cause: str
):
    what = await refusal(http, sandbox, GOOGLE, await GOOGLE.proof(sandbox, **issue))

    assert re.search(cause, what), what


@every_provider
async def test_clocks_may_differ_by_a_minute(http: VendorHttp, sandbox: Running, provider: Provider):
    client = provider.client(http, sandbox)

    await client.verify(await provider.proof(sandbox, lifetime_s=-50), now=utc_now())
    await client.verify(await provider.proof(sandbox, age_s=-50), now=utc_now())


@pytest.mark.parametrize("garbage", ["", "a", "a.b.c", "e30.e30.e30", "bnVsbA.bnVsbA.", "é.é.é", ".." * 9, "=.=.="])
async def test_garbage_is_refused_without_a_call(http: VendorHttp, sandbox: Running, garbage: str):
    with pytest.raises(ProofRefused):
        await GOOGLE.client(http, sandbox).verify(Proof(id_token=garbage), now=utc_now())
    assert not keys_fetched(sandbox)


@every_provider
async def test_a_changed_token_is_refused(http: VendorHttp, sandbox: Running, provider: Provider):
    proof = await provider.proof(sandbox)
    header, payload, signature = getattr(proof, provider.proof_field).split(".")
    other = getattr(await provider.proof(sandbox, subject="somebody-else"), provider.proof_field).split(".")[1]

    for token in (f"{header}.{other}.{signature}", f"{header}.{payload}.", f"{header}.{payload}.{signature}="):
        assert "signature" in await refusal(
            http, sandbox, provider, replace(proof, **{provider.proof_field: token})
        )


@pytest.mark.parametrize("provider", [APPLE, LIMITED], ids=lambda provider: provider.name)
async def test_the_subject_must_equal_the_id_that_the_client_sends(
    http: VendorHttp, sandbox: Running, provider: Provider
):
    proof = replace(await provider.proof(sandbox), id="somebody-else")

    assert "another id" in await refusal(http, sandbox, provider, proof)


@every_provider
async def test_a_nonce_must_equal_the_claim_and_can_be_required(
    http: VendorHttp, sandbox: Running, provider: Provider
):
    proof = await provider.proof(sandbox, nonce="n-1")
    client = provider.client(http, sandbox, require_nonce=True)

    assert (await client.verify(replace(proof, nonce="n-1"), now=utc_now())).social_id == provider.subject
    assert "nonce" in await refusal(http, sandbox, provider, replace(proof, nonce="n-2"))
    assert "nonce" in await refusal(http, sandbox, provider, proof, require_nonce=True)
    without = replace(await provider.proof(sandbox), nonce="n-1")
    assert "nonce" in await refusal(http, sandbox, provider, without)


@every_provider
async def test_a_config_can_name_other_issuers(http: VendorHttp, sandbox: Running, provider: Provider):
    proof = await provider.proof(sandbox, claims={"iss": "https://own.test"})

    found = await provider.client(http, sandbox, issuers=("https://own.test",)).verify(proof, now=utc_now())

    assert found.social_id == provider.subject
    assert "issuer" in await refusal(
        http, sandbox, provider, await provider.proof(sandbox), issuers=("https://own.test",)
    )


@every_provider
async def test_a_config_without_apps_is_invalid(http: VendorHttp, sandbox: Running, provider: Provider):
    with pytest.raises(ConfigInvalid, match=rf"sign_in {provider.platform}: audiences"):
        provider.client(http, sandbox, audiences=())


@every_provider
async def test_a_key_that_is_published_later_is_found(http: VendorHttp, sandbox: Running, provider: Provider):
    client = provider.client(http, sandbox)
    await client.verify(await provider.proof(sandbox), now=utc_now())

    found = await client.verify(await provider.proof(sandbox, token_fault="rotated"), now=utc_now())

    assert found.social_id == provider.subject
    assert keys_fetched(sandbox) == 2


@every_provider
async def test_unknown_keys_do_not_cause_a_call_each(http: VendorHttp, sandbox: Running, provider: Provider):
    for _ in range(5):
        await refusal(http, sandbox, provider, await provider.proof(sandbox, token_fault="unknown_key"))

    assert keys_fetched(sandbox) <= 2


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.SERVER_ERROR, Refused),
        (Fault.UNAUTHORIZED, Refused),
        (Fault.REDIRECT, Refused),
        (Fault.WRONG_CONTENT_TYPE, Garbled),
        (Fault.MALFORMED_FRAME, Garbled),
        (Fault.EMPTY_ANSWER, Garbled),
        (Fault.HUGE_ANSWER, Garbled),
        (Fault.REFUSE, VendorError),
        (Fault.CUT_MID_STREAM, VendorError),
    ],
)
async def test_keys_that_cannot_be_fetched_are_the_fault_of_the_provider(
    http: VendorHttp, sandbox: Running, fault: Fault, error: type[VendorError]
):
    proof = await GOOGLE.proof(sandbox)
    sandbox.sandbox.switches[GOOGLE.vendor] = KeyOptions(fault=fault, position=0)

    with pytest.raises(error) as failed:
        await GOOGLE.client(http, sandbox).verify(proof, now=utc_now())

    assert failed.value.vendor == GOOGLE.platform
    assert "Location" not in str(failed.value)
    sandbox.sandbox.switches.clear()
    assert (await GOOGLE.client(http, sandbox).verify(proof, now=utc_now())).social_id == GOOGLE.subject


async def test_the_keys_of_a_slow_provider_are_awaited_for_five_seconds_at_most(http: VendorHttp, sandbox: Running):
    proof = await GOOGLE.proof(sandbox)
    sandbox.sandbox.switches[GOOGLE.vendor] = KeyOptions(fault=Fault.HANG_BEFORE_HEADERS)

    with pytest.raises(VendorError, match="within 5 s"):
        await GOOGLE.client(http, sandbox).verify(proof, now=utc_now())


async def test_a_token_expires_by_the_given_time(http: VendorHttp, sandbox: Running):
    proof = await GOOGLE.proof(sandbox)

    with pytest.raises(ProofRefused, match="expired"):
        await GOOGLE.client(http, sandbox).verify(proof, now=utc_now() + timedelta(hours=2))
