"""The id tokens of the sandbox's sign-in providers: their keys, and faults that a server must detect."""

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import Field

from streams.wire.codec import dumps, loads
from vendors.sandbox.calls import Call, Dialect
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.signin.grants import Issue

TokenFault = Literal[
    "",
    "alg_none",
    "hs256",
    "crit",
    "jku",
    "x5u",
    "jwk",
    "unknown_key",
    "forged",
    "rotated",
    "no_kid",
    "nested",
    "deep",
]
_LEVELS: dict[TokenFault, int] = {"nested": 100, "deep": 2_000}
_UNPUBLISHED: frozenset[TokenFault] = frozenset({"jwk", "unknown_key", "forged"})
_UNUSABLE = (
    {"kty": "RSA", "kid": "short", "n": "AQAB", "e": "AQAB"},
    {"kty": 7},
    "key",
    None,
    {"kty": "oct", "k": ""},
)
_MANY = 1_000


class IdTokenIssue(Issue):
    """The body of `_issue` of a provider with id tokens."""

    nonce: str = ""
    lifetime_s: int = 3600
    claims: dict[str, Any] = Field(default_factory=dict)
    """Claims that are added to the token, or replace its claims. A null removes a claim."""
    token_fault: TokenFault = ""
    """`hs256`: signed with the public key as a shared secret. `unknown_key`: with a key that is not published.
    `forged`: with such a key under the name of a published one. `rotated`: with a new key, which is published.
    `nested`, `deep`: its claims are nested 100 or 2,000 levels deep."""


class IdTokenIssuer:
    """Signs the id tokens of one provider, and publishes its keys."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._published = ["key-1"]

    def route(self, sandbox: Sandbox, path: str, dialect: Dialect) -> web.RouteDef:
        return sandbox.get(path, dialect, "keys", self._keys)

    def token(self, issue: IdTokenIssue, **claims: Any) -> str:
        """Return a token of the person and the app, with `claims`."""
        issued = int(time.time()) - issue.age_s
        given = {
            "iss": self._issuer,
            "aud": issue.app,
            "sub": issue.subject,
            "iat": issued,
            "exp": issued + issue.lifetime_s,
            **({"nonce": issue.nonce} if issue.nonce else {}),
            **claims,
            **issue.claims,
        }
        claims_given = {name: value for name, value in given.items() if value is not None}
        return self._signed(issue.garble(dumps(claims_given)), issue.token_fault)

    def claims(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a validly signed token that has not expired, otherwise None."""
        for kid in self._published:
            try:
                key = _key(self._issuer, kid).public_key()
                return jwt.decode(token, key, ["RS256"], options={"verify_aud": False})
            except jwt.InvalidTokenError:
                continue
        return None

    def _signed(self, payload: bytes, fault: TokenFault) -> str:
        kid = self._published[-1]
        if fault == "rotated":
            kid = f"key-{len(self._published) + 1}"
            self._published.append(kid)
        header: dict[str, Any] = {"alg": "RS256", "kid": kid}
        if fault == "alg_none":
            return _encoded({**header, "alg": "none"}, payload) + "."
        if fault == "hs256":
            public = _key(self._issuer, kid).public_key()
            secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            content = _encoded({**header, "alg": "HS256"}, payload)
            return f"{content}.{_base64(hmac.digest(secret, content.encode(), hashlib.sha256))}"
        if fault == "no_kid":
            del header["kid"]
        if levels := _LEVELS.get(fault):
            payload = payload[:-1] + b',"deep":' + b"[" * levels + b"]" * levels + b"}"
        content = _encoded(header | _header(fault, self._issuer), payload)
        signer = _key(self._issuer, "unpublished" if fault in _UNPUBLISHED else kid)
        return f"{content}.{_base64(signer.sign(content.encode(), PKCS1v15(), SHA256()))}"

    async def _keys(self, call: Call) -> None:
        """Send the keys. `malformed` in the query adds unusable keys before them, `many` a thousand."""
        call.headers["Cache-Control"] = "public, max-age=3600"
        keys: list[Any] = [_jwk(self._issuer, kid) for kid in self._published]
        if "malformed" in call.request.query:
            keys = [*_UNUSABLE, *keys]
        if "many" in call.request.query:
            keys += [{"kid": f"{number}"} for number in range(_MANY)]
        await call.answer({"keys": keys}, empty={"keys": []})


@cache
def _key(issuer: str, kid: str) -> RSAPrivateKey:
    """Return a key, which is generated once per process."""
    return generate_private_key(public_exponent=65537, key_size=2048)


@cache
def _jwk(issuer: str, kid: str) -> dict[str, Any]:
    jwk = loads(jwt.algorithms.RSAAlgorithm.to_jwk(_key(issuer, kid).public_key()))
    del jwk["key_ops"]
    return {**jwk, "kid": kid, "use": "sig", "alg": "RS256"}


def _header(fault: TokenFault, issuer: str) -> dict[str, Any]:
    """Return the fields of the header that a fault adds or replaces."""
    match fault:
        case "crit":
            return {"crit": ["https://sandbox.test/extension"], "https://sandbox.test/extension": True}
        case "jku" | "x5u":
            return {fault: "https://sandbox.test/keys"}
        case "jwk":
            return {"jwk": _jwk(issuer, "unpublished")}
        case "unknown_key":
            return {"kid": "unpublished"}
    return {}


def _encoded(header: Mapping[str, Any], payload: bytes) -> str:
    return f"{_base64(dumps(header))}.{_base64(payload)}"


def _base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
