"""The cache of providers' keys: when they are fetched, for how long they are used, and which are usable."""

import asyncio
from collections.abc import Sequence
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from streams.wire.codec import dumps, loads
from tests.peers.rsa_keys import rsa_key
from tests.vendors.http.upstream import Respond, Upstream, plain
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.signin.jwks import JwksCache

HOUR = 3600
RSA = rsa_key().public_key()
N = loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA))["n"]


def rsa_key(kid: str, **fields: Any) -> dict[str, Any]:
    return {"kty": "RSA", "kid": kid, "n": N, "e": "AQAB", **fields}


def keys(*found: Any, **headers: str) -> Respond:
    return plain(200, dumps({"keys": found}), Content_Type="application/json", **headers)


class Clock:
    """A cache whose time the test sets."""

    def __init__(self, http: VendorHttp, upstream: Upstream) -> None:
        self.now = 1_000.0
        self._http = http
        self._upstream = upstream
        self._cache = JwksCache(lambda: self.now)

    async def find(self, kid: str = "", *, path: str = "/keys") -> jwt.PyJWK | None:
        return await self._cache.find(self._http, "acme", f"{self._upstream.url}{path}", kid=kid)

    @property
    def fetched(self) -> int:
        return len(self._upstream.seen)


@pytest.fixture
def cache(http: VendorHttp, upstream: Upstream) -> Clock:
    return Clock(http, upstream)


@pytest.mark.parametrize(
    ("header", "age_s"),
    [
        ("max-age=7200", 7200),
        ("public, max-age=7200, must-revalidate", 7200),
        ("max-age=0", 300),
        ("no-store", HOUR),
        ("max-age=999999999", 24 * HOUR),
        ("max-age=99999999999999999999", 24 * HOUR),
        ("s-max-age=7, x", HOUR),
        ("max-age=-5", HOUR),
        ("", HOUR),
    ],
)
async def test_keys_are_used_as_long_as_the_provider_says_within_bounds(
    cache: Clock, upstream: Upstream, header: str, age_s: int
):
    upstream.respond_with(keys(rsa_key("a"), Cache_Control=header))
    for passed_s, fetched in ((0, 1), (age_s - 1, 1), (2, 2)):
        cache.now += passed_s
        assert await cache.find("a")
        assert cache.fetched == fetched


async def test_an_unknown_key_is_looked_for_once_every_thirty_seconds(cache: Clock, upstream: Upstream):
    upstream.respond_with(keys(rsa_key("a")))
    assert await cache.find("a")
    for passed_s, fetched in ((0, 2), (1, 2), (28, 2), (1, 3), (29, 3)):
        cache.now += passed_s
        assert await cache.find("b") is None
        assert cache.fetched == fetched

    upstream.respond_with(keys(rsa_key("a"), rsa_key("b")))
    cache.now += 1
    assert await cache.find("b")
    assert await cache.find("a")
    assert cache.fetched == 4


@pytest.mark.parametrize("kid", ["a", "b"])
async def test_one_fetch_serves_all_who_wait(cache: Clock, upstream: Upstream, kid: str):
    go = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await go.wait()
        return await keys(rsa_key("a"), rsa_key("b"))(request)

    upstream.respond_with(keys(rsa_key("a")), slow)
    if kid == "b":
        assert await cache.find("a")
    else:
        upstream.respond_with(slow)
    waiting = [asyncio.ensure_future(cache.find(kid)) for _ in range(50)]  # noqa: TID251 - awaited below
    await asyncio.sleep(0)
    waiting[0].cancel()
    go.set()

    found = await asyncio.gather(*waiting[1:])

    assert all(found)
    assert cache.fetched <= (2 if kid == "a" else 3), "only the cancelled one's fetch is repeated"


async def test_a_failed_fetch_fails_all_who_wait_once(cache: Clock, upstream: Upstream):
    upstream.respond_with(plain(404))

    found = await asyncio.gather(*(cache.find("a") for _ in range(20)), return_exceptions=True)

    assert {type(error) for error in found} == {Refused}
    assert len({id(error) for error in found}) == 20, "errors are not shared, because each gets a traceback"
    assert cache.fetched == 1


async def test_expired_keys_are_used_while_the_provider_fails(cache: Clock, upstream: Upstream):
    upstream.respond_with(keys(rsa_key("a")), plain(404))
    assert await cache.find("a")
    cache.now += 2 * HOUR

    for passed_s, fetched in ((0, 2), (29, 2), (1, 3)):
        cache.now += passed_s
        assert await cache.find("a"), "the old key"
        assert cache.fetched == fetched
    with pytest.raises(Refused, match="answered 404"):
        await cache.find("b")
    cache.now += 24 * HOUR
    with pytest.raises(Refused):
        await cache.find("a")

    upstream.respond_with(keys(rsa_key("a")))
    assert await cache.find("a")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (plain(500), Refused),
        (plain(302, Location="/elsewhere"), Refused),
        (plain(200, b"<html>"), Garbled),
        (plain(200, b"[" * 2_000 + b"]" * 2_000), Garbled),
        (plain(200, b'{"keys":{}}'), Garbled),
        (plain(200, b"[]"), Garbled),
        (keys(), Garbled),
        (keys(rsa_key("a"), "x" * 65_536), Garbled),
    ],
)
async def test_what_is_no_set_of_keys_is_refused(
    cache: Clock, upstream: Upstream, answer: Respond, error: type[VendorError]
):
    upstream.respond_with(answer)

    with pytest.raises(error):
        await cache.find("a")
    assert all(seen.path == "/keys" for seen in upstream.seen)


UNUSABLE: Sequence[Any] = (
    *(None, 7, "key", [], {}, {"kty": "RSA", "kid": "a"}),
    {"kty": "oct", "kid": "a", "k": "c2VjcmV0", "alg": "HS256"},
    rsa_key("a", use="enc"),
    rsa_key("a", alg="HS256"),
    rsa_key("a", alg="none"),
    rsa_key("a", alg="ES256"),
    rsa_key("a", n="AQAB"),
    rsa_key("a", n="!!"),
    rsa_key("a", n=N * 5),
    rsa_key("a", n=7),
    {"kty": "EC", "kid": "a", "crv": "secp256k1", "x": "AQ", "y": "AQ"},
    {"kty": "EC", "kid": "a", "crv": "P-256", "x": "AQ", "y": "AQ"},
    {"kty": "EC", "kid": "a", "crv": "Ed25519", "x": "AQ"},
    {"kty": "OKP", "kid": "a", "crv": "P-256", "x": "AQ"},
)


async def test_unusable_keys_are_skipped(cache: Clock, upstream: Upstream):
    upstream.respond_with(keys(*UNUSABLE, rsa_key("b")))

    assert await cache.find("a") is None
    assert await cache.find("b")


async def test_a_key_has_one_algorithm(cache: Clock, upstream: Upstream):
    curve, edwards = jwt.algorithms.ECAlgorithm, jwt.algorithms.OKPAlgorithm
    p256 = loads(curve.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))
    p384 = loads(curve.to_jwk(ec.generate_private_key(ec.SECP384R1()).public_key()))
    ed = loads(edwards.to_jwk(ed25519.Ed25519PrivateKey.generate().public_key()))
    upstream.respond_with(
        keys(
            rsa_key("rs"),
            rsa_key("ps", alg="PS256"),
            {**p256, "kid": "p256"},
            {**p384, "kid": "p384"},
            {**ed, "kid": "ed"},
        )
    )

    found = {kid: await cache.find(kid) for kid in ("rs", "ps", "p256", "p384", "ed")}

    assert {kid: key and key.algorithm_name for kid, key in found.items()} == {
        "rs": "RS256",
        "ps": "PS256",
        "p256": "ES256",
        "p384": "ES384",
        "ed": "EdDSA",
    }


async def test_the_first_hundred_keys_are_used(cache: Clock, upstream: Upstream):
    short = [{"kty": "RSA"}] * 99
    upstream.respond_with(keys(*short, rsa_key("hundredth"), rsa_key("later")))

    assert await cache.find("hundredth")
    assert await cache.find("later") is None


async def test_a_token_without_a_kid_has_the_only_key(cache: Clock, upstream: Upstream):
    upstream.respond_with(keys(rsa_key("a")), keys(rsa_key("a"), rsa_key("b")))

    assert await cache.find("")
    cache.now += 2 * HOUR
    assert await cache.find("") is None


async def test_the_keys_of_the_most_recent_addresses_are_kept(cache: Clock, upstream: Upstream):
    upstream.respond_with(keys(rsa_key("a")))
    for number in range(64):
        await cache.find("a", path=f"/{number}")
    await cache.find("a", path="/0")
    await cache.find("a", path="/64")

    assert cache.fetched == 65
    await cache.find("a", path="/0")
    assert cache.fetched == 65
    await cache.find("a", path="/1")
    assert cache.fetched == 66
