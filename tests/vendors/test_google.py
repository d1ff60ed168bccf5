"""Authentication at Google: API keys in a header, and renewed tokens of service accounts."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from pydantic import SecretStr

from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid
from tests.peers.rsa_keys import rsa_key
from tests.vendors.http.upstream import Respond, Upstream, plain, running_upstream
from vendors.account import Account
from vendors.errors import Garbled, Refused
from vendors.google import GoogleHttp
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp

KEY = rsa_key()
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


@pytest.fixture
async def tokens() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        running.respond_with(token("t1"))
        yield running


def token(text: str, lifetime_s: Any = 3599) -> Respond:
    body = dumps({"access_token": text, "expires_in": lifetime_s, "token_type": "Bearer"})
    return plain(200, body, Content_Type="application/json")


def service_account(tokens: Upstream, **fields: Any) -> str:
    value = {
        "type": "service_account",
        "client_email": "speech@project.iam.gserviceaccount.com",
        "private_key_id": "kid1",
        "private_key": PEM,
        "token_uri": f"{tokens.url}/token",
        **fields,
    }
    return dumps({name: field for name, field in value.items() if field is not None}).decode()


def caller(http: VendorHttp | None, key: str | None) -> GoogleHttp:
    account = Account("main", "vendor_d_audio", "http://x", SecretStr(key) if key is not None else None)
    return GoogleHttp(http, account)  # type: ignore[arg-type]


async def ask(google: GoogleHttp, upstream: Upstream) -> bytes:
    async with google.stream(
        Outgoing("vendor_d_audio", upstream.url, headers={"X-A": "1"}, body=b"q", repeat=Repeat.SAFE)
    ) as answer:
        return b"".join([piece async for piece in answer.pieces()])


async def test_key_is_sent_in_a_header(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"yes"))

    assert await ask(caller(http, " k1\n"), upstream) == b"yes"
    await ask(caller(http, None), upstream)

    first, second = upstream.seen
    assert (first.headers["X-Goog-Api-Key"], first.headers["X-A"], first.query) == ("k1", "1", {})
    assert "X-Goog-Api-Key" not in second.headers


async def test_service_account_exchanges_an_assertion_for_a_token(
    http: VendorHttp, upstream: Upstream, tokens: Upstream
):
    upstream.respond_with(plain(200, b"yes"))

    assert await ask(caller(http, service_account(tokens)), upstream) == b"yes"

    assert upstream.seen[0].headers["Authorization"] == "Bearer t1"
    assert "X-Goog-Api-Key" not in upstream.seen[0].headers
    (requested,) = tokens.seen
    assert (requested.path, requested.headers["Content-Type"]) == ("/token", "application/x-www-form-urlencoded")
    form = {name: value for name, (value,) in parse_qs(requested.body.decode()).items()}
    assert form.keys() == {"grant_type", "assertion"}
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    claims = jwt.decode(
        form["assertion"], KEY.public_key(), algorithms=["RS256"], audience="https://oauth2.googleapis.com/token"
    )
    assert jwt.get_unverified_header(form["assertion"]) == {"alg": "RS256", "typ": "JWT", "kid": "kid1"}
    assert claims["iss"] == "speech@project.iam.gserviceaccount.com"
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert claims["exp"] - claims["iat"] == 3600


async def test_one_token_serves_all_calls_of_an_account(http: VendorHttp, upstream: Upstream, tokens: Upstream):
    upstream.respond_with(plain(200))
    key = service_account(tokens)

    await asyncio.gather(*(ask(caller(http, key), upstream) for _ in range(5)))
    assert len(tokens.seen) == 1

    await ask(caller(http, service_account(tokens, private_key_id="kid2")), upstream)
    assert len(tokens.seen) == 2, "another account has its own token"


async def test_token_that_expires_soon_is_renewed(http: VendorHttp, upstream: Upstream, tokens: Upstream):
    upstream.respond_with(plain(200))
    tokens.respond_with(token("t1", 299), token("t2"))
    google = caller(http, service_account(tokens))

    for _ in range(3):
        await ask(google, upstream)

    assert [seen.headers["Authorization"] for seen in upstream.seen] == ["Bearer t1", "Bearer t2", "Bearer t2"]


async def test_refused_token_is_renewed_once(http: VendorHttp, upstream: Upstream, tokens: Upstream):
    tokens.respond_with(token("t1"), token("t2"), token("t3"))
    google = caller(http, service_account(tokens))
    upstream.respond_with(plain(401, b"{}"), plain(200, b"yes"), plain(401, b"{}"))

    assert await ask(google, upstream) == b"yes"
    with pytest.raises(Refused, match="answered 401"):
        await ask(google, upstream)

    reported = [seen.headers["Authorization"].removeprefix("Bearer ") for seen in upstream.seen]
    assert reported == ["t1", "t2", "t2", "t3"]


async def test_concurrent_calls_with_a_refused_token_renew_it_once(
    http: VendorHttp, upstream: Upstream, tokens: Upstream
):
    tokens.respond_with(token("t1"), token("t2"))
    both = asyncio.Barrier(2)

    async def void(request: web.Request) -> web.Response:
        if request.headers["Authorization"] == "Bearer t1":
            await both.wait()
            return web.Response(status=401)
        return web.Response(body=b"yes")

    upstream.respond_with(void)
    google = caller(http, service_account(tokens))

    assert await asyncio.gather(ask(google, upstream), ask(google, upstream)) == [b"yes", b"yes"]
    assert len(tokens.seen) == 2


async def test_wrong_key_is_not_retried(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(401, b"{}"))

    with pytest.raises(Refused, match="answered 401"):
        await ask(caller(http, "k1"), upstream)
    assert len(upstream.seen) == 1


async def test_refusal_of_the_token_endpoint_is_reported(http: VendorHttp, upstream: Upstream, tokens: Upstream):
    error = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
    tokens.respond_with(
        plain(400, dumps(error), Content_Type="application/json"), plain(200, b"{}"), token("t", "1")
    )
    google = caller(http, service_account(tokens))

    with pytest.raises(Refused, match="vendor_d_audio answered 400: invalid_grant"):
        await ask(google, upstream)
    for _ in range(2):
        with pytest.raises(Garbled, match="without an access token"):
            await ask(google, upstream)
    assert upstream.seen == []


@pytest.mark.parametrize(
    ("fields", "reported"),
    [
        ({"client_email": None}, "api_key is no service account: client_email is required"),
        ({"private_key": None}, "api_key is no service account: private_key is required"),
        ({"token_uri": "file:///x"}, "api_key is no service account: token_uri"),
    ],
)
def test_missing_field_of_a_service_account_is_named(fields: dict[str, Any], reported: str):
    with pytest.raises(ConfigInvalid, match=f"vendor_accounts main: {reported}"):
        caller(None, service_account(Upstream(), **fields))


@pytest.mark.parametrize("key", ["{", "{'client_email': 'x'}"])
def test_service_account_that_is_not_json_is_reported(key: str):
    with pytest.raises(ConfigInvalid, match="vendor_accounts main: api_key is not valid JSON"):
        caller(None, key)


@pytest.mark.parametrize("pem", ["nonsense", PEM.replace("M", "N", 40)])
async def test_invalid_private_key_is_reported_without_the_key(
    http: VendorHttp, upstream: Upstream, tokens: Upstream, pem: str
):
    with pytest.raises(ConfigInvalid, match="private_key is not an RSA key") as fault:
        await ask(caller(http, service_account(tokens, private_key=pem)), upstream)
    assert pem not in str(fault.value)
