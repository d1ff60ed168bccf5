"""`X-Service-Auth-Token` over real HTTP."""

import base64
import hmac
import secrets
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from app.http.callers.tokens import make_server_token
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from streams.wire.ids import new_id
from tests.calendar.clock import epoch_s
from tests.peers.rsa_keys import rsa_key
from tests.running.config_stores import store_unchecked
from tests.running.servers import Server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def private_pem(key: Any) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public_pem(key: Any) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


KEYS = {
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "RS256": rsa_key(),
}
STRANGER = ed25519.Ed25519PrivateKey.generate()
SHORT_RSA = public_pem(rsa_key(1024))  # to be refused
SECRET = "hs-" + secrets.token_hex(32)
SERVER_KEYS = [
    *({"kid": f"{alg}-1", "alg": alg, "public_key": public_pem(key)} for alg, key in KEYS.items()),
    {"kid": "HS256-1", "alg": "HS256", "secret": SECRET},
]


@pytest.fixture
async def s2s(server):
    """The server, with a key of each algorithm registered for app `default`."""
    await register(server, SERVER_KEYS)
    return server


async def register(server, keys: list[dict[str, Any]], **more):
    value = {"require_sign": False, "server_keys": keys, **more}
    await server.services.configs.put("default", "auth", "default", value, author="tests", origin=COMMAND)


def make(alg: str = "EdDSA", **more) -> str:
    """Return a valid token with some changed fields."""
    key = SECRET if alg == "HS256" else private_pem(KEYS[alg])
    return make_server_token(**{"kid": f"{alg}-1", "alg": alg, "key": key, "app_id": "default"} | more)


def forge(*, header: Any = None, key: Any = KEYS["EdDSA"], claims_json: bytes | None = None, **claims: Any) -> str:
    """Return a correctly signed EdDSA token with any header and claims. Claims that are None are omitted.

    If `key` is bytes, it is the key of an HMAC.
    """
    now = int(epoch_s())
    if header is None or isinstance(header, dict):
        header = {"alg": "EdDSA", "kid": "EdDSA-1"} | (header or {})
    claims = {"iss": "default", "aud": "parley", "iat": now, "exp": now + 300} | claims
    claims_json = claims_json or dumps({name: value for name, value in claims.items() if value is not None})
    text = b".".join(encoded(part) for part in (dumps(header), claims_json))
    signature = hmac.digest(key, text, "sha256") if isinstance(key, bytes) else key.sign(text)
    return (text + b"." + encoded(signature)).decode()


def encoded(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


def with_exp(literal: str) -> bytes:
    return b'{"iss":"default","aud":"parley","iat":1,"exp":%s}' % literal.encode()


async def login(server, token: str | None, *, device: str = "d1") -> tuple[int, str]:
    headers = {} if token is None else {"X-Service-Auth-Token": token}
    url = server.url + "/bp/server/user/login"
    async with server.http.post(url, json={"device": {"id": device}}, headers=headers) as response:
        reply = await response.json()
        return response.status, reply.get("error", {}).get("message", "")


async def get_user(server, user_id: str, **headers: str) -> tuple[int, str]:
    url = f"{server.url}/bp/server/user/{user_id}"
    async with server.http.get(url, headers={k.replace("_", "-"): v for k, v in headers.items()}) as response:
        reply = await response.json()
        return response.status, reply.get("error", {}).get("error_type", "") or reply["user"]["uid"]


REFUSED = (401, "auth_failed: X-Service-Auth-Token is missing or wrong")


async def test_tokens_of_each_algorithm_are_accepted(s2s):
    for alg in (*KEYS, "HS256"):
        assert await login(s2s, make(alg)) == (200, "")


def bad_tokens() -> dict[str, str | None]:
    now = int(epoch_s())
    jwk = jwt.algorithms.OKPAlgorithm.to_jwk(STRANGER.public_key(), as_dict=True)
    rsa_public = public_pem(KEYS["RS256"]).encode()
    return {
        "none": None,
        "empty": "",
        "garbage": "not.a.token",
        "not-ascii": "é.é.é",
        "two-parts": make().rpartition(".")[0],
        "altered": make()[:-8] + "AAAAAAAA",
        "alg-none": forge(header={"alg": "none"}),
        "alg-none-unsigned": forge(header={"alg": "none"}).rpartition(".")[0] + ".",
        "alg-of-another-key": forge(header={"alg": "ES256"}),
        "alg-not-a-string": forge(header={"alg": ["EdDSA"]}),
        "claims-not-an-object": forge(claims_json=b"[1]"),
        "claims-no-json": forge(claims_json=b"{"),
        "header-not-an-object": forge(header=["EdDSA"]),
        "kid-unknown": forge(header={"kid": "x"}),
        "kid-not-a-string": forge(header={"kid": 1}),
        "kid-null": forge(header={"kid": None}),
        "kid-of-another-algorithm": make(kid="ES256-1"),
        "public-key-as-secret": forge(header={"alg": "HS256", "kid": "RS256-1"}, key=rsa_public),
        "another-key": forge(key=STRANGER),
        "embedded-jwk": forge(key=STRANGER, header={"jwk": jwk}),
        "own-key-and-jwk": forge(header={"jwk": jwk}),
        "jku": forge(header={"jku": "https://example.com/keys"}),
        "x5u": forge(header={"x5u": "https://example.com/cert"}),
        "crit": forge(header={"crit": ["exp"]}),
        "crit-that-a-library-knows": forge(header={"crit": ["b64"], "b64": True}),
        "expired-by-a-stranger": forge(key=STRANGER, iat=now - 700, exp=now - 62),
        "exp-missing": forge(exp=None),
        "exp-text": forge(exp=str(now + 60)),
        "exp-huge": forge(claims_json=with_exp("9" * 400)),
        "exp-infinite": forge(claims_json=with_exp("1e999")),
        "exp-not-a-number": forge(claims_json=with_exp("NaN")),
        "iat-missing": forge(iat=None),
        "iat-ahead": forge(iat=now + 300),
        "iat-text": forge(iat=str(now)),
        "not-yet": forge(nbf=now + 300),
        "iss-missing": forge(iss=None),
        "iss-of-another-app": forge(iss="other"),
        "iss-list": forge(iss=["default"]),
        "aud-missing": forge(aud=None),
        "aud-of-another-service": forge(aud="other"),
        "sub-not-a-string": forge(sub=5),
        "sub-empty": forge(sub=""),
        "scope-not-a-string": forge(scope=["account"]),
        "jti-empty": forge(jti=""),
        "jti-too-long": forge(jti="j" * 129),
    }


async def test_an_invalid_token_is_refused_without_a_reason(s2s):
    answers = {name: await login(s2s, token) for name, token in bad_tokens().items()}
    assert answers == dict.fromkeys(answers, REFUSED)


async def test_expired_and_too_long_tokens_of_a_known_key_are_named(s2s):
    now = int(epoch_s())
    expired = await login(s2s, forge(iat=now - 700, exp=now - 62))
    assert expired == (401, "auth_failed: X-Service-Auth-Token has expired")
    assert await login(s2s, forge(exp=True)) == expired
    too_long = await login(s2s, forge(exp=now + 600 + 300))
    assert too_long == (401, "auth_failed: X-Service-Auth-Token is valid for more than 600 s")


async def test_clocks_may_differ_by_a_minute(s2s):
    now = int(epoch_s())
    assert (await login(s2s, forge(iat=now - 600, exp=now - 50)))[0] == 200
    assert (await login(s2s, forge(iat=now + 50)))[0] == 200
    assert (await login(s2s, make(ttl_s=650)))[0] == 200


async def test_the_app_determines_lifetime_and_audience(s2s):
    await register(s2s, SERVER_KEYS, server_token_max_s=60, server_audience="talk")
    assert await login(s2s, make()) == REFUSED
    assert await login(s2s, make(ttl_s=60)) == REFUSED
    too_long = (401, "auth_failed: X-Service-Auth-Token is valid for more than 60 s")
    assert await login(s2s, make(ttl_s=200, audience="talk")) == too_long
    assert (await login(s2s, make(ttl_s=60, audience="talk")))[0] == 200


async def test_tokens_of_a_removed_key_are_refused(s2s):
    token = make()
    assert (await login(s2s, token))[0] == 200
    await register(s2s, SERVER_KEYS[1:])
    assert await login(s2s, token) == REFUSED


async def test_a_key_that_replaces_one_with_the_same_kid_is_used_immediately(s2s):
    assert (await login(s2s, make()))[0] == 200
    await register(s2s, [{"kid": "EdDSA-1", "alg": "EdDSA", "public_key": public_pem(STRANGER)}])
    assert await login(s2s, make()) == REFUSED
    assert (await login(s2s, make(key=private_pem(STRANGER))))[0] == 200


async def test_an_invalid_key_that_is_stored_is_an_error_of_the_config(s2s):
    for key in (
        {"alg": "EdDSA", "public_key": "no pem"},
        {"alg": "EdDSA"},
        {"alg": "RS256", "public_key": public_pem(KEYS["EdDSA"])},
        {"alg": "ES256", "public_key": public_pem(ec.generate_private_key(ec.SECP384R1()))},
        {"alg": "RS256", "public_key": SHORT_RSA},
        {"alg": "HS256", "secret": "short"},
        {"alg": "HS256", "public_key": public_pem(KEYS["RS256"])},
        {"alg": "EdDSA", "public_key": private_pem(KEYS["EdDSA"])},
    ):
        await store_unchecked(s2s.services, "auth", "default", {"server_keys": [{"kid": "k", **key}]})
        status, message = await login(s2s, make(kid="k"))
        assert status == 422, key
        assert message.startswith("config_invalid: auth default: ")
        assert "server key k" in message


async def test_a_token_with_an_id_is_accepted_once(s2s):
    token = make(jti="once-1")
    assert (await login(s2s, token))[0] == 200
    assert await login(s2s, token) == REFUSED
    assert await login(s2s, make(jti="once-1", ttl_s=500)) == REFUSED
    assert (await login(s2s, make(jti="once-2")))[0] == 200


async def test_a_scope_lists_the_endpoint_groups_of_a_token(s2s):
    assert (await login(s2s, make(scope="account")))[0] == 200
    assert (await login(s2s, make(scope="ai account")))[0] == 200
    for scope in ("ai", "", "accounts"):
        status, message = await login(s2s, make(scope=scope))
        assert status == 403
        assert message.startswith("permission_denied: ")


async def test_a_users_token_is_valid_only_for_its_paths(s2s):
    uid, _ = await s2s.login("one")
    other, _ = await s2s.login("two")
    token = make(sub=uid)
    assert await get_user(s2s, uid, X_Service_Auth_Token=token) == (200, uid)
    assert await get_user(s2s, other, X_Service_Auth_Token=token) == (403, "permission_denied")
    assert (await login(s2s, token))[0] == 403


async def test_account_paths_accept_c2s_headers_of_their_user(s2s):
    uid, session = await s2s.login("one")
    other, _ = await s2s.login("two")
    assert await get_user(s2s, uid, X_Service_Session_Token=session) == (200, uid)
    assert await get_user(s2s, other, X_Service_Session_Token=session) == (403, "permission_denied")
    assert await get_user(s2s, uid, X_Service_Session_Token="st_") == (400, "account.invalid_session")
    assert await get_user(s2s, uid) == (401, "auth_failed")


async def test_a_token_takes_precedence_over_a_signature(s2s):
    uid, session = await s2s.login("one")
    headers = {"X_Service_Session_Token": session, "X_Service_Auth_Token": "bad"}
    assert await get_user(s2s, uid, **headers) == (401, "auth_failed")


async def test_sessions_are_signed_if_the_app_requires_it(s2s):
    uid, session = await s2s.login("one")
    keys = [{"id": "k", "key": "k" * 32}]
    await register(s2s, SERVER_KEYS, require_sign=True, sign_keys=keys)
    assert await get_user(s2s, uid, X_Service_Session_Token=session) == (401, "auth_failed")
    assert await get_user(s2s, uid, X_Service_Auth_Token=make()) == (200, uid)


async def test_a_user_that_does_not_exist_is_not_found(s2s):
    for user_id in (new_id(), "nobody"):
        assert await get_user(s2s, user_id, X_Service_Auth_Token=make()) == (404, "not_found")


async def test_a_server_token_is_not_a_session(s2s):
    headers = {"X-Service-Auth-Token": make(), "X-Service-Session-Token": make()}
    async with s2s.http.get(s2s.url + "/bp/user/me", headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["error"]["error_type"] == "account.invalid_session"
