"""Microsoft's tokens: which kinds prove an identity, and that both kinds give the same one."""

from dataclasses import replace
from typing import Any

import pytest

from tests.calendar.clock import utc_now
from tests.vendors.signin.sandbox_people import MICROSOFT
from vendors.errors import VendorError
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.server import Running
from vendors.signin.protocols import Profile, Proof, ProofRefused, VerifiedIdentity

TENANT = "5f1c2c52-8a6e-4c4b-9d55-0a1a6a1c7e01"
PERSONAL = {"tenant": "9188040d-6c67-4c5b-b112-36a304b66dad", "subject": "00000000-0000-0000-48d3-1887fad3a0aa"}


async def verify(http: VendorHttp, sandbox: Running, **issue: Any) -> VerifiedIdentity:
    proof = await MICROSOFT.proof(sandbox, **issue)
    return await MICROSOFT.client(http, sandbox).verify(proof, now=utc_now())


async def test_both_kinds_of_token_give_the_same_identity(http: VendorHttp, sandbox: Running):
    by_id_token = await verify(http, sandbox)
    by_access_token = await verify(http, sandbox, kind="work")
    client = MICROSOFT.client(http, sandbox)

    assert by_id_token.social_id == by_access_token.social_id == MICROSOFT.subject
    assert by_id_token.profile == await client.profile(by_id_token) == Profile("Mei Lin")
    assert await client.profile(by_access_token) == Profile("Mei Lin")


async def test_a_personal_account_has_the_id_that_graph_knows(http: VendorHttp, sandbox: Running):
    assert (await verify(http, sandbox, **PERSONAL)).social_id == "48d31887fad3a0aa"
    other_tenant = {**PERSONAL, "tenant": TENANT}
    assert (await verify(http, sandbox, **other_tenant)).social_id == PERSONAL["subject"]


@pytest.mark.parametrize(
    ("issue", "cause"),
    [
        ({"kind": "opaque"}, "Send an id token"),
        ({"kind": "work", "app": "somebody-elses-app"}, "another app"),
        ({"kind": "work", "claims": {"appid": None}}, "another issuer"),
        ({"kind": "work", "claims": {"appid": ["sandbox-app"]}}, "another app"),
        ({"kind": "work", "claims": {"appid": None, "azp": "somebody-elses-app"}}, "another app"),
        ({"kind": "work", "claims": {"aud": "https://vault.azure.net"}}, "InvalidAuthenticationToken"),
        ({"kind": "work", "token_fault": "forged"}, "InvalidAuthenticationToken"),
        ({"kind": "work", "token_fault": "alg_none"}, "InvalidAuthenticationToken"),
        ({"kind": "work", "claims": {"padding": "x" * 12_500}}, "more than 16384"),
        ({"claims": {"azp": "somebody-elses-app"}}, "another app"),
        ({"kind": "work", "claims": {"sandbox_id": "somebody-else"}}, "not that of the account"),
        ({"claims": {"oid": None}}, "no valid oid"),
        ({"claims": {"tid": "another/tenant"}}, "another issuer"),
    ],
    ids=str,
)
async def test_a_token_that_proves_nothing_is_refused(
    http: VendorHttp, sandbox: Running, issue: dict[str, Any], cause: str
):
    with pytest.raises(ProofRefused, match=cause):
        await verify(http, sandbox, **issue)


@pytest.mark.parametrize("kind", ["id_token", "work"])
async def test_only_the_tenants_of_the_configured_issuers_are_accepted(
    http: VendorHttp, sandbox: Running, kind: str
):
    ours, other = (f"https://login.microsoftonline.com/{tenant}/v2.0" for tenant in (TENANT, "contoso"))
    proof = await MICROSOFT.proof(sandbox, kind=kind, tenant=TENANT)
    assert (await MICROSOFT.client(http, sandbox, issuers=(other, ours)).verify(proof, now=utc_now())).social_id
    with pytest.raises(ProofRefused, match="another"):
        await MICROSOFT.client(http, sandbox, issuers=(other,)).verify(proof, now=utc_now())


async def test_an_access_token_is_refused_where_a_nonce_is_required(http: VendorHttp, sandbox: Running):
    client = MICROSOFT.client(http, sandbox, require_nonce=True)
    proof = await MICROSOFT.proof(sandbox, kind="work")
    with pytest.raises(ProofRefused, match="nonce"):
        await client.verify(replace(proof, nonce="n-0S6_WzA2Mj"), now=utc_now())


async def test_an_id_token_may_come_in_its_own_field(http: VendorHttp, sandbox: Running):
    proof = await MICROSOFT.proof(sandbox)
    client = MICROSOFT.client(http, sandbox)

    found = await client.verify(Proof(id_token=proof.access_token), now=utc_now())

    assert found.social_id == MICROSOFT.subject


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.UNAVAILABLE, Fault.RATE_LIMITED, Fault.REDIRECT])
async def test_a_failure_of_graph_is_no_refusal(http: VendorHttp, sandbox: Running, fault: Fault):
    sandbox.sandbox.switches["microsoft"] = KeyOptions(fault=fault, retry_after_s=9)

    with pytest.raises(VendorError):
        await verify(http, sandbox, kind="work")
