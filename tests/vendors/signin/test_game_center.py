"""Game Center's signatures, with the certificates of the sandbox: which of them prove a player's id."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import certifi
import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.errors import ConfigInvalid
from tests.calendar.clock import utc_now
from tests.vendors.signin.sandbox_people import APP, GAME_CENTER
from vendors.errors import Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.server import Running
from vendors.signin.game_center_keys import parse_key_url, roots_of
from vendors.signin.play_games import PlayGames
from vendors.signin.protocols import Proof, ProofRefused, SignInApp, VerifiedIdentity

KEY_URL = "https://static.gc.apple.com/public-key/gc-prod-10.cer"
CONFIG = SignInApp("ios_games_service", bundle_ids=(APP,))


def fetched(sandbox: Running) -> int:
    return sum(1 for _ in sandbox.bill.since(0))


async def verify(http: VendorHttp, sandbox: Running, proof: Proof, **config: Any) -> VerifiedIdentity:
    return await GAME_CENTER.client(http, sandbox, **config).verify(proof, now=utc_now())


async def refusal(http: VendorHttp, sandbox: Running, proof: Proof, **config: Any) -> str:
    with pytest.raises(ProofRefused) as refused:
        await verify(http, sandbox, proof, **config)
    return refused.value.what


async def test_a_signed_team_player_id_becomes_the_identity(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox, other_id="G:1", age_s=60)

    found = await verify(http, sandbox, proof)

    assert (found.social_id, found.trusted) == (GAME_CENTER.subject, True)
    assert found.single_use_until is not None
    assert found.single_use_until > utc_now() + timedelta(minutes=8)


@pytest.mark.parametrize("team_player_id", ["", "T:_of-somebody-else"])
async def test_only_the_signed_id_becomes_the_identity(http: VendorHttp, sandbox: Running, team_player_id: str):
    proof = await GAME_CENTER.proof(sandbox, subject="G:7", signs="player_id", other_id=team_player_id)

    assert (await verify(http, sandbox, proof)).social_id == "G:7"


async def test_any_of_our_bundle_ids_may_be_signed(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox, app="com.first.app")

    assert (await verify(http, sandbox, proof)).social_id == GAME_CENTER.subject
    assert "another app" in await refusal(http, sandbox, await GAME_CENTER.proof(sandbox, app="com.evil.app"))


@pytest.mark.parametrize(
    "change",
    [
        {"team_player_id": "T:_of-somebody-else"},
        {"team_player_id": ""},
        {"team_player_id": "T:_\u00e9"},
        {"team_player_id": "T" * 257},
        {"salt": "AAAA"},
        {"salt": ""},
        {"salt": "!!!!"},
        {"salt": "A" * 5_000},
        {"signature": ""},
        {"signature": "AAAA"},
        {"signature": "not base64"},
        {"timestamp": 0},
        {"timestamp": -1},
        {"timestamp": 2**63},
        {"timestamp": 2**80},
    ],
    ids=str,
)
async def test_a_changed_proof_is_refused(http: VendorHttp, sandbox: Running, change: dict[str, Any]):
    proof = await GAME_CENTER.proof(sandbox)
    await verify(http, sandbox, proof)

    await refusal(http, sandbox, replace(proof, **change))


async def test_another_time_than_the_signed_one_is_refused(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox)

    assert "signature" in await refusal(http, sandbox, replace(proof, timestamp=proof.timestamp + 1))


@pytest.mark.parametrize(("age_s", "accepted"), [(11 * 60, False), (9 * 60, True), (-60, True), (-180, False)])
async def test_signatures_are_accepted_for_ten_minutes(
    http: VendorHttp, sandbox: Running, *, age_s: int, accepted: bool
):
    proof = await GAME_CENTER.proof(sandbox, age_s=age_s)

    if accepted:
        await verify(http, sandbox, proof)
    else:
        assert "timestamp" in await refusal(http, sandbox, proof)
        assert not fetched(sandbox)


async def test_a_signature_has_one_single_use_key_however_it_is_written(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox)
    first = await verify(http, sandbox, proof)
    # The last character of four bytes in base64 has four unused bits.
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = proof.salt[:5] + alphabet[alphabet.index(proof.salt[5]) + 1] + "=="
    assert other != proof.salt

    again = await verify(http, sandbox, replace(proof, salt=other))
    later = await verify(http, sandbox, await GAME_CENTER.proof(sandbox))

    assert first.single_use == again.single_use != later.single_use


BAD_URLS = [
    "",
    "https://evil.com/x.apple.com",
    "https://static.gc.apple.com.evil.com/public-key/gc-prod-10.cer",
    "https://evil-static.gc.apple.com/public-key/gc-prod-10.cer",
    "https://www.apple.com/public-key/gc-prod-10.cer",
    "http://static.gc.apple.com/public-key/gc-prod-10.cer",
    "https://static.gc.apple.com/public-key/../user-content/mine.cer",
    "https://static.gc.apple.com/public-key/a/../../mine.cer",
    "https://static.gc.apple.com/public-key/..%2fmine.cer",
    "https://static.gc.apple.com/public-key/.cer",
    "https://static.gc.apple.com/public-key/gc-prod-10.cer.exe",
    "https://static.gc.apple.com/public-key/gc-prod-10.cer?x=1",
    "https://static.gc.apple.com/public-key/gc-prod-10.cer#x",
    "https://static.gc.apple.com/other/gc-prod-10.cer",
    "https://static.gc.apple.com:8443/public-key/gc-prod-10.cer",
    "https://static.gc.apple.com@evil.com/public-key/gc-prod-10.cer",
    "https://me:you@static.gc.apple.com/public-key/gc-prod-10.cer",
    "https://evil.com\\@static.gc.apple.com/public-key/gc-prod-10.cer",
    "https://static.gc.apple.com\\.evil.com/public-key/gc-prod-10.cer",
    "https://static.gc.apple.com/public-key/gc-prod-10.cer\n",
    "https://static.gc.apple.com/public-key/gc-prod-10.cer\r\nHost: evil.com",
    " https://static.gc.apple.com/public-key/gc-prod-10.cer",
    "https://127.0.0.1/public-key/gc-prod-10.cer",
    "https://[::1]/public-key/gc-prod-10.cer",
    "https://STATIC.GC.APPLE.COM/public-key/gc-prod-10.cer",
    "https://static.gc.appl\u0435.com/public-key/gc-prod-10.cer",
    "file:///public-key/gc-prod-10.cer",
    f"https://static.gc.apple.com/public-key/{'a' * 65}.cer",
]


@pytest.mark.parametrize("url", BAD_URLS)
async def test_a_key_elsewhere_is_refused_before_any_call(http: VendorHttp, sandbox: Running, url: str):
    proof = replace(await GAME_CENTER.proof(sandbox), public_key_url=url)

    assert "public_key_url" in await refusal(http, sandbox, proof)
    assert not fetched(sandbox)


HOSTS = ("static.gc.apple.com", "apple.com", "evil.com", "[::1]", "user:pass")
PATHS = ("/public-key/", "gc-prod-10", ".cer", "%2f", "..", "//")
PIECES = st.sampled_from(["https://", "http://", *HOSTS, *PATHS, *"@:/\\?#%.\t\n \u3002\u2044"])


@given(st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=8).map("".join)))
def test_whatever_url_is_accepted_names_apple_to_every_parser(url: str):
    try:
        host, path = parse_key_url(CONFIG, url)
    except ProofRefused:
        return
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.path, parts.query, parts.fragment) == ("https", host, path, "", "")
    assert url == f"https://static.gc.apple.com{path}"
    assert path.startswith("/public-key/")
    assert path.endswith(".cer")
    assert "/." not in path
    assert path.count("/") == 2


@given(st.integers(0, len(KEY_URL)), st.text(min_size=1, max_size=4))
def test_text_inserted_into_the_url_never_changes_the_host(at: int, text: str):
    url = KEY_URL[:at] + text + KEY_URL[at:]
    try:
        host, _ = parse_key_url(CONFIG, url)
    except ProofRefused:
        return
    assert host == "static.gc.apple.com"
    assert url.startswith("https://static.gc.apple.com/public-key/")


async def test_a_config_can_name_another_host(http: VendorHttp, sandbox: Running):
    url = "https://keys.own.test/public-key/gc-prod-10.cer"
    proof = replace(await GAME_CENTER.proof(sandbox), public_key_url=url)

    assert (await verify(http, sandbox, proof, key_hosts=("keys.own.test",))).social_id == GAME_CENTER.subject
    await refusal(http, sandbox, replace(proof, public_key_url=KEY_URL), key_hosts=("keys.own.test",))


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        ("expired", "not valid at this time"),
        ("not-yet-valid", "not valid at this time"),
        ("self-signed", "not issued by a known authority"),
        ("other-owner", "does not belong to Apple"),
        ("elliptic", "has no RSA key"),
        ("garbage", "not a certificate"),
        ("empty", "not a certificate"),
        ("huge", "too large"),
        ("nowhere", "does not exist"),
    ],
)
async def test_a_key_without_a_valid_certificate_is_refused(
    http: VendorHttp, sandbox: Running, key: str, cause: str
):
    assert cause in await refusal(http, sandbox, await GAME_CENTER.proof(sandbox, key=key))


async def test_the_sandboxes_authority_is_unknown_to_a_config_without_it(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox)
    await verify(http, sandbox, proof)

    assert "known authority" in await refusal(http, sandbox, proof, key_roots=())


async def test_a_redirect_is_not_followed(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox)
    sandbox.sandbox.switches["game_center"] = KeyOptions(fault=Fault.REDIRECT)

    assert "status 302" in await refusal(http, sandbox, proof)
    assert fetched(sandbox) == 1


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.RATE_LIMITED, Fault.REFUSE])
async def test_a_failure_of_apple_is_no_refusal(http: VendorHttp, sandbox: Running, fault: Fault):
    proof = await GAME_CENTER.proof(sandbox)
    sandbox.sandbox.switches["game_center"] = KeyOptions(fault=fault)

    with pytest.raises(VendorError) as failed:
        await verify(http, sandbox, proof)

    assert failed.value.vendor == GAME_CENTER.platform
    if isinstance(failed.value, Refused):
        assert failed.value.retryable
    sandbox.sandbox.switches.clear()
    await verify(http, sandbox, proof)


async def test_a_certificate_is_fetched_once(http: VendorHttp, sandbox: Running):
    for _ in range(3):
        await verify(http, sandbox, await GAME_CENTER.proof(sandbox))

    assert fetched(sandbox) == 1


async def test_a_kept_certificate_is_not_used_after_its_end(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox)
    await verify(http, sandbox, proof)
    later = utc_now() + timedelta(days=366)

    with pytest.raises(ProofRefused, match="not valid at this time"):
        await GAME_CENTER.client(http, sandbox).verify(
            replace(proof, timestamp=int(later.timestamp() * 1000)), now=later
        )


async def test_names_without_a_certificate_do_not_displace_others(http: VendorHttp, sandbox: Running):
    proof = await GAME_CENTER.proof(sandbox)
    await verify(http, sandbox, proof)
    for number in range(70):
        url = f"https://static.gc.apple.com/public-key/none-{number}.cer"
        await refusal(http, sandbox, replace(proof, public_key_url=url))
    sandbox.bill.clear()

    await verify(http, sandbox, proof)

    assert not fetched(sandbox)


async def test_verification_can_be_switched_off(http: VendorHttp, sandbox: Running):
    config = {"skip_signature_verify": True, "bundle_ids": (), "audiences": ()}
    found = await verify(http, sandbox, Proof(team_player_id="T:1", player_id="G:1"), **config)
    other = await verify(http, sandbox, Proof(player_id="G:1"), **config)

    assert (found.social_id, found.trusted, found.single_use) == ("T:1", False, "")
    assert other.social_id == "G:1"
    assert "player_id" in await refusal(http, sandbox, Proof(), **config)


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"bundle_ids": (), "audiences": ()}, "bundle_ids"),
        ({"key_roots": ("no certificate",)}, "key_roots"),
    ],
)
async def test_an_insufficient_config_is_invalid(
    http: VendorHttp, sandbox: Running, fields: dict[str, Any], cause: str
):
    with pytest.raises(ConfigInvalid, match=f"sign_in ios_games_service: {cause}"):
        GAME_CENTER.client(http, sandbox, **fields)


def test_the_bundled_authority_was_issued_by_the_bundled_root():
    root, authority = roots_of(CONFIG)

    root.verify_directly_issued_by(root)
    authority.verify_directly_issued_by(root)
    assert root.subject.rfc4514_string().startswith("CN=DigiCert Trusted Root G4,")


def test_the_bundled_root_is_that_of_public_lists():
    public = "".join(Path(certifi.where()).read_text().split())
    root = "".join(roots_of(CONFIG)[0].public_bytes(Encoding.PEM).decode().splitlines()[1:-1])

    assert root in public


@pytest.mark.parametrize("player_id", ["", "a b", "a" * 257, "\u00e9"])
async def test_play_games_trusts_player_ids_that_can_be_some(http: VendorHttp, player_id: str):
    client = PlayGames(http, SignInApp("android_games_service"))

    found = await client.verify(Proof(player_id="g0123"), now=utc_now())

    assert (found.social_id, found.trusted) == ("g0123", False)
    with pytest.raises(ProofRefused):
        await client.verify(Proof(player_id=player_id), now=utc_now())
