"""Providers that redeem codes or check access tokens, with the sandbox: whom they accept, and whose fault it is."""

import asyncio
import traceback
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from pydantic import SecretStr

from streams.wire.errors import ConfigInvalid, ServiceError
from tests.sampling import paired
from tests.vendors.signin.providers import BY_NAME, NOW, ROWS, SECRET, Row
from vendors.errors import Garbled, Refused, TimedOut, VendorError
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import KeyOptions
from vendors.sandbox.server import Running
from vendors.signin.protocols import Proof, ProofRefused

every_provider = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
code_providers = pytest.mark.parametrize("row", [row for row in ROWS if row.by_code], ids=lambda row: row.name)
checked_providers = pytest.mark.parametrize(
    "row", [row for row in ROWS if "check" in row.stages], ids=lambda r: r.name
)


async def failure(row: Row, http: VendorHttp, sandbox: Running, proof: Proof, **config: Any) -> ServiceError:
    """Return the error of a verification, which must not repeat any secret of the call."""
    with pytest.raises(ServiceError) as raised:
        await row.client(http, sandbox, **config).verify(proof, now=NOW)
    error = raised.value
    reported = f"{error} {error.extra} {''.join(traceback.format_exception(error))}"
    for secret in (SECRET, proof.code, proof.access_token):
        assert not secret or secret not in reported
    return error


@every_provider
async def test_a_good_proof_becomes_an_identity(row: Row, http: VendorHttp, sandbox: Running):
    proof = await row.proof(sandbox)

    found = await row.client(http, sandbox).verify(proof, now=NOW)

    assert (found.social_id, found.trusted, found.xid) == (row.subject, True, row.xid)
    assert found.openid == (row.subject if row.openid else "")
    assert bool(found.access_token) is row.access_token
    assert bool(found.refresh_token) is row.refresh_token
    assert found.access_token != proof.code
    expires = int(NOW.timestamp()) + row.lifetime_s if row.lifetime_s else 0
    assert found.expiration_date == pytest.approx(expires, abs=30)
    assert [entry.stage for entry in sandbox.bill.since()] == list(row.stages)


@every_provider
async def test_the_profile_is_that_of_the_person(row: Row, http: VendorHttp, sandbox: Running):
    client = row.client(http, sandbox)
    found = await client.verify(await row.proof(sandbox), now=NOW)

    assert await client.profile(found) == row.profile


@every_provider
@pytest.mark.parametrize("of", ["another app", "nobody"])
async def test_a_proof_of_another_app_or_of_nobody_is_refused(
    row: Row, http: VendorHttp, sandbox: Running, of: str
):
    proof = await row.proof(sandbox, **({"app": "271828"} if of == "another app" else {}))
    if of == "nobody":
        proof = Proof(code="made-up-code", access_token="made-up-token", open_id=row.subject)

    assert isinstance(await failure(row, http, sandbox, proof), ProofRefused)


@every_provider
async def test_an_expired_proof_is_refused(row: Row, http: VendorHttp, sandbox: Running):
    age_s = 301 if row.by_code else 7201

    assert isinstance(await failure(row, http, sandbox, await row.proof(sandbox, age_s=age_s)), ProofRefused)


@code_providers
async def test_a_code_is_accepted_once(row: Row, http: VendorHttp, sandbox: Running):
    proof = await row.proof(sandbox)
    client = row.client(http, sandbox)

    results = await asyncio.gather(*(client.verify(proof, now=NOW) for _ in range(5)), return_exceptions=True)

    assert sum(isinstance(result, ProofRefused) for result in results) == 4


@every_provider
async def test_what_no_provider_issues_is_refused_without_a_call(row: Row, http: VendorHttp, sandbox: Running):
    for value in ("", "with space", "line\r\nfeed", "nul\0", "é", "\ud800", "x" * 16_385):
        assert isinstance(await failure(row, http, sandbox, Proof(code=value, access_token=value)), ProofRefused)
    assert list(sandbox.bill.since()) == []


OWN_CODES: dict[str, tuple[type[ServiceError], bool]] = {
    "unauthorized": (ProofRefused, False),
    "error_inside_200": (Refused, True),
}
"""Errors for which each provider has its own codes, and whether they are retryable."""
FAULTS: dict[str, tuple[type[ServiceError], bool]] = {
    "rate_limited": (Refused, True),
    "unavailable": (Refused, True),
    "server_error": (Refused, True),
    "redirect": (Refused, False),
    "refuse": (VendorError, True),
    "wrong_content_type": (Garbled, False),
    "malformed_frame": (Garbled, False),
    "empty_answer": (Garbled, False),
    "huge_answer": (Garbled, False),
    "cut_mid_stream": (Garbled, True),
}


@pytest.mark.parametrize(("fault", "name"), [*product(OWN_CODES, BY_NAME), *paired([*FAULTS], [*BY_NAME])])
async def test_the_provider_is_at_fault_unless_it_refuses_the_proof(
    http: VendorHttp, sandbox: Running, fault: str, name: str
):
    row, (kind, retryable) = BY_NAME[name], (OWN_CODES | FAULTS)[fault]
    for stage in row.stages:
        proof = await row.proof(sandbox, fault=fault, fault_at=stage)
        if stage == "profile" and fault in {"malformed_frame", "huge_answer"}:
            # The texts of a person may be the cause, so that the id before them is sufficient.
            assert (await row.client(http, sandbox).verify(proof, now=NOW)).social_id == row.subject
            continue
        error = await failure(row, http, sandbox, proof)

        if (row.name, stage, fault) == ("line", "profile", "error_inside_200"):
            assert isinstance(error, Garbled)  # This answer has no error codes.
            continue
        assert isinstance(error, kind)
        assert error.retryable is retryable


@every_provider
async def test_redirects_are_not_followed(row: Row, http: VendorHttp, sandbox: Running):
    error = await failure(row, http, sandbox, await row.proof(sandbox, fault="redirect", fault_at=row.stages[0]))

    assert isinstance(error, VendorError)
    assert error.vendor_status == 302
    assert len(list(sandbox.bill.since())) == 1


async def test_no_provider_is_waited_for_longer_than_five_seconds(http: VendorHttp, sandbox: Running):
    """A provider that sends nothing, and one that stops in the middle of its answer."""

    async def timed(row: Row, fault: str) -> float:
        proof = await row.proof(sandbox, fault=fault)
        began = asyncio.get_running_loop().time()
        assert isinstance(await failure(row, http, sandbox, proof), TimedOut), row.name
        return asyncio.get_running_loop().time() - began

    waits = [timed(row, fault) for row in ROWS for fault in ("hang_before_headers", "stall_mid_stream")]
    took = await asyncio.gather(*waits)

    assert min(took) > 4.5
    assert max(took) < 8


@code_providers
async def test_a_code_is_never_sent_twice(row: Row, http: VendorHttp, sandbox: Running):
    for fault in ("server_error", "refuse", "cut_mid_stream"):
        sandbox.bill.clear()

        await failure(row, http, sandbox, await row.proof(sandbox, fault=fault, fault_at="token"))

        assert [entry.stage for entry in sandbox.bill.since()] == ["token"]


@checked_providers
async def test_a_check_is_repeated_once_after_a_failure(row: Row, http: VendorHttp, sandbox: Running):
    proof = await row.proof(sandbox, fault="server_error", fault_at="check", times=1)

    assert (await row.client(http, sandbox).verify(proof, now=NOW)).social_id == row.subject


PROFILE_FAULTS: dict[str, tuple[type[ServiceError], bool]] = {
    "unauthorized": (ProofRefused, False),
    "unavailable": (VendorError, True),
    "redirect": (VendorError, False),
}
"""Errors of faults, and whether they are retryable."""


@pytest.mark.parametrize(
    ("name", "fault"),
    paired([name for name in BY_NAME if name not in {"taobao", "wechat_mini"}], [*PROFILE_FAULTS]),
)  # The two others have no call for it.
async def test_a_profile_is_not_available_because_of_the_person_or_of_the_provider(
    http: VendorHttp, sandbox: Running, name: str, fault: str
):
    row = BY_NAME[name]
    client = row.client(http, sandbox)
    found = await client.verify(await row.proof(sandbox), now=NOW)
    sandbox.sandbox.switches[row.name] = KeyOptions.of({"fault": fault})

    kind, retryable = PROFILE_FAULTS[fault]
    with pytest.raises(kind) as raised:
        await client.profile(found)

    assert raised.value.retryable is retryable
    assert found.access_token not in str(raised.value)


CONFIGS = [
    ({"audiences": ()}, "audiences", "all"),
    ({"audiences": ("",)}, "audiences", "all"),
    ({"audiences": ("first-app",)}, "audiences must contain client_id", "code"),
    ({"client_id": ""}, "client_id", "code"),
    ({"client_secret": SecretStr("")}, "client_secret", "secret"),
    ({"redirect_uri": ""}, "redirect_uri", "redirect"),
]
REDIRECTED = {"amazon", "instagram", "taobao"}


@every_provider
async def test_an_insufficient_config_is_refused_and_names_its_field(row: Row, http: VendorHttp, sandbox: Running):
    for fields, named, needed_by in CONFIGS:
        needed = {
            "all": True,
            "code": row.by_code,
            "secret": row.by_code and row.name != "alipay",
            "redirect": row.name in REDIRECTED,
        }[needed_by]
        if needed:
            with pytest.raises(ConfigInvalid, match=f"sign_in {row.platform}: {named}"):
                row.client(http, sandbox, **fields)
        else:
            row.client(http, sandbox, **fields)


@pytest.mark.parametrize("name", ["wechat", "wechat_mini", "taobao", "amazon"])
async def test_a_wrong_secret_is_a_fault_of_the_config(http: VendorHttp, sandbox: Running, name: str):
    row = BY_NAME[name]

    error = await failure(row, http, sandbox, await row.proof(sandbox), client_secret=SecretStr("wrong"))

    assert isinstance(error, ConfigInvalid)
    assert f"sign_in {row.platform}: " in str(error)


async def test_expiration_counts_from_the_given_time(http: VendorHttp, sandbox: Running):
    later = NOW + timedelta(days=400)
    row = BY_NAME["wechat"]

    found = await row.client(http, sandbox).verify(await row.proof(sandbox), now=later)

    assert found.expiration_date == int(later.timestamp()) + 7200
