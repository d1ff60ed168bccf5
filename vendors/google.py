"""Authentication for Google's APIs: an API key, or an access token of a service account."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import AfterValidator, Field, SecretStr, ValidationError

from streams.wire.codec import loads
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import sha256_hex
from streams.wire.model import HttpUrl, Model, faults
from vendors.account import Account, KeyAccount, fits_header
from vendors.errors import Garbled, Refused, TooLong, VendorError
from vendors.http.kept import Kept
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.refusals import RETRYABLE_STATUS
from vendors.http.transport import Incoming, VendorHttp
from vendors.json_events import is_error, number_of
from vendors.too_long import says_too_long

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_S = 3600
_SKEW_S = 10
_MAX_TOKENS = 1000
_RENEW_S = 300
"""A token is renewed this many seconds before it expires."""
_UNAUTHORIZED = 401
_TRANSIENT = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED"})
"""The names of transient errors. Their code may be that of gRPC instead of HTTP, or absent."""
_NO_RSA_KEY = "is no service account: private_key is not an RSA key"


class ServiceAccount(Model):
    """The fields that are needed from the JSON key file of a service account."""

    client_email: str = Field(min_length=1)
    private_key: SecretStr
    private_key_id: str | None = None
    token_uri: HttpUrl = _TOKEN_URL


def _credentials(key: SecretStr) -> SecretStr:
    """Validate that `key` is an API key or the JSON of a service account."""
    text = key.get_secret_value().strip()
    if text.startswith("{"):
        _check_key(_parse(text))
    else:
        fits_header(SecretStr(text))
    return key


class GoogleAccount(KeyAccount):
    api_key: Annotated[SecretStr, AfterValidator(_credentials)] | None = None


class _Token:
    """The access token of one service account. Concurrent calls share one request for it."""

    def __init__(self) -> None:
        self.fetching = asyncio.Lock()
        self.text = ""
        self.until = 0.0


_TOKENS = Kept(_Token, most=_MAX_TOKENS)


class GoogleHttp:
    """Sends calls with the credentials of one account.

    The account's `api_key` is an API key or the complete JSON of a service account.
    """

    def __init__(self, http: VendorHttp, account: Account) -> None:
        key = account.api_key.get_secret_value().strip() if account.api_key else ""
        self._http = http
        self._account = account
        self._service = _service_account(account, key) if key.startswith("{") else None
        self._key = {"X-Goog-Api-Key": key} if key and self._service is None else {}
        if self._service is not None:
            self._token = _TOKENS.of(http, sha256_hex(key.encode()))

    @asynccontextmanager
    async def stream(self, call: Outgoing) -> AsyncIterator[Incoming]:
        """Like `VendorHttp.stream`, with credentials. A token that the vendor rejects is renewed once."""
        async with AsyncExitStack() as stack:
            headers = await self._authorization(call)
            try:
                answer = await stack.enter_async_context(self._http.stream(_with_headers(call, headers)))
            except Refused as error:
                if error.vendor_status != _UNAUTHORIZED or self._service is None or not call.may_repeat:
                    raise
                self._forget(headers)
                headers = await self._authorization(call)
                answer = await stack.enter_async_context(self._http.stream(_with_headers(call, headers)))
            yield answer

    async def _authorization(self, call: Outgoing) -> dict[str, str]:
        if self._service is None:
            return self._key
        async with self._token.fetching:
            if self._token.until < time.monotonic():
                await self._fetch(self._service, call.connect_s)
            return {"Authorization": f"Bearer {self._token.text}"}

    def _forget(self, headers: dict[str, str]) -> None:
        if headers["Authorization"] == f"Bearer {self._token.text}":
            self._token.until = 0.0

    async def _fetch(self, service: ServiceAccount, connect_s: float) -> None:
        try:
            assertion = await asyncio.to_thread(_sign, service)
        except ValueError as error:
            raise _invalid_key(self._account, error) from None
        call = Outgoing(
            self._account.platform,
            service.token_uri,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            body=urlencode({"grant_type": _GRANT, "assertion": assertion}).encode(),
            connect_s=connect_s,
            repeat=Repeat.SAFE,
        )
        started_at = time.monotonic()
        async with self._http.stream(call) as answer:
            value = await answer.json(limit_bytes=64 * 1024)
        match value:
            case {"access_token": str(text), "expires_in": int(lifetime_s)}:
                self._token.text, self._token.until = text, started_at + lifetime_s - _RENEW_S
            case _:
                raise Garbled(self._account.platform, "answered without an access token")


def response_object(vendor: str, value: Any) -> dict[str, Any]:
    """Return `value` as an object. Raise the error that it contains, or `Garbled` if it is no object."""
    if not isinstance(value, dict):
        raise Garbled(vendor, "answered with JSON that is not an object")
    if (error := value.get("error")) and is_error(error):
        raise error_in_response(vendor, error)
    return value


def error_in_response(vendor: str, error: Any) -> VendorError:
    """Return the error for an error object inside a 200 response."""
    if not isinstance(error, dict):
        return Garbled(vendor, "sent a malformed error")
    code, status = number_of(error.get("code")), error.get("status")
    message = " ".join(str(error.get("message") or status or error.get("code") or "").split())[:200]
    extra = {"code": str(status)[:64]} if status else None
    retryable = code in RETRYABLE_STATUS or str(status) in _TRANSIENT
    return (TooLong if says_too_long(message) else Refused)(
        vendor, f"broke off with an error: {message}", retryable=retryable, extra=extra
    )


def _with_headers(call: Outgoing, headers: dict[str, str]) -> Outgoing:
    return replace(call, headers={**call.headers, **headers})


def _service_account(account: Account, key: str) -> ServiceAccount:
    try:
        return _parse(key)
    except ValueError as error:
        raise _invalid_key(account, error) from None


def _invalid_key(account: Account, error: ValueError) -> ConfigInvalid:
    return ConfigInvalid(f"vendor_accounts {account.name}: api_key {error}")


def _parse(key: str) -> ServiceAccount:
    """Parse the JSON of a service account. Raise `ValueError` if it is invalid."""
    try:
        value = loads(key)
    except ValueError:
        raise ValueError("is not valid JSON") from None
    try:
        return ServiceAccount.model_validate(value)
    except ValidationError as error:
        path, description = next(faults(error))
        raise ValueError(f"is no service account: {path or 'it'} {description}") from None


def _check_key(service: ServiceAccount) -> None:
    """Raise `ValueError` if the private key is not an RSA key.

    Its numbers are not checked before the first call, because that takes 25 ms and the list of configs checks all
    accounts.
    """
    pem = service.private_key.get_secret_value().encode()
    try:
        key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(_NO_RSA_KEY) from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError(_NO_RSA_KEY)  # noqa: TRY004 - a fault of the config


def _sign(service: ServiceAccount) -> str:
    """Return the signed assertion for the token endpoint. It takes about 25 ms, most of it to parse the key.

    Raise `ValueError` if the key is invalid.
    """
    issued = int(time.time()) - _SKEW_S
    claims = {
        "iss": service.client_email,
        "scope": _SCOPE,
        "aud": _TOKEN_URL,
        "iat": issued,
        "exp": issued + _ASSERTION_S,
    }
    headers = {"kid": service.private_key_id} if service.private_key_id else None
    try:
        return jwt.encode(claims, service.private_key.get_secret_value(), algorithm="RS256", headers=headers)
    except (jwt.PyJWTError, ValueError, TypeError):
        raise ValueError(_NO_RSA_KEY) from None
