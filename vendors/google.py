"""How Google is told who calls: by an API key, or by the access token of a service account."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

import jwt
from pydantic import Field, SecretStr

from streams.wire.codec import loads
from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.ids import sha256_hex
from streams.wire.model import Model
from vendors.account import Account
from vendors.errors import Garbled, Refused, VendorError
from vendors.refusals import RETRYABLE_STATUS
from vendors.transport import Incoming, Outgoing, VendorHttp

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_S = 3600
_SKEW_S = 10
_RENEW_S = 300
"""So long before its end a token is not used any more."""
_UNAUTHORIZED = 401


class ServiceAccount(Model):
    """What is needed of the JSON that Google gives out for a service account."""

    client_email: str = Field(min_length=1)
    private_key: SecretStr
    private_key_id: str | None = None
    token_uri: str = Field(default=_TOKEN_URL, pattern=r"^https?://")


class _Token:
    """The access token of one service account, fetched by one call while the others wait for it."""

    def __init__(self) -> None:
        self.fetching = asyncio.Lock()
        self.text = ""
        self.until = 0.0


_tokens: WeakKeyDictionary[VendorHttp, dict[str, _Token]] = WeakKeyDictionary()
"""Clients live as short as a request; tokens live as long as the process reaches vendors."""


class GoogleHttp:
    """Calls of one account. Its `api_key` is a key, or a service account's whole JSON."""

    def __init__(self, http: VendorHttp, account: Account) -> None:
        key = account.api_key.get_secret_value().strip() if account.api_key else ""
        self._http = http
        self._account = account
        self._service = _service_account(account, key) if key.startswith("{") else None
        self._key = {"X-Goog-Api-Key": key} if key and self._service is None else {}
        if self._service is not None:
            self._token = _tokens.setdefault(http, {}).setdefault(sha256_hex(key.encode()), _Token())

    @asynccontextmanager
    async def stream(self, call: Outgoing) -> AsyncIterator[Incoming]:
        """As `VendorHttp.stream`, in the account's name; a token that is no longer taken is renewed once."""
        async with AsyncExitStack() as stack:
            headers = await self._authorization(call)
            try:
                answer = await stack.enter_async_context(self._http.stream(_with(call, headers)))
            except Refused as error:
                if error.status != _UNAUTHORIZED or self._service is None:
                    raise
                self._forget(headers)
                headers = await self._authorization(call)
                answer = await stack.enter_async_context(self._http.stream(_with(call, headers)))
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
        assertion = await asyncio.to_thread(_assertion, self._account, service)
        call = Outgoing(
            self._account.platform,
            service.token_uri,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            body=urlencode({"grant_type": _GRANT, "assertion": assertion}).encode(),
            connect_s=connect_s,
        )
        begun = time.monotonic()
        async with self._http.stream(call) as answer:
            value = await answer.json(limit_bytes=64 * 1024)
        match value:
            case {"access_token": str(text), "expires_in": int(lifetime_s)}:
                self._token.text, self._token.until = text, begun + lifetime_s - _RENEW_S
            case _:
                raise Garbled(self._account.platform, "answered without an access token")


def answered(vendor: str, value: Any) -> dict[str, Any]:
    """The object that an answer must be; an error inside a good answer is raised."""
    if not isinstance(value, dict):
        raise Garbled(vendor, "answered with what is no object")
    if error := value.get("error"):
        raise error_inside(vendor, error)
    return value


def error_inside(vendor: str, error: Any) -> VendorError:
    """The error that came where more of an answer should be."""
    if not isinstance(error, dict):
        return Garbled(vendor, "sent an error of an unknown form")
    code, status = error.get("code"), error.get("status")
    told = " ".join(str(error.get("message") or status or code).split())[:200]
    extra = {"code": str(status)[:64]} if status else None
    return Refused(vendor, f"broke off with an error: {told}", retryable=code in RETRYABLE_STATUS, extra=extra)


def _with(call: Outgoing, headers: dict[str, str]) -> Outgoing:
    return replace(call, headers={**call.headers, **headers})


def _service_account(account: Account, key: str) -> ServiceAccount:
    try:
        return ServiceAccount.of(loads(key))
    except ValueError:
        raise ConfigInvalid(f"vendor_accounts {account.name}: api_key is no valid JSON") from None
    except InvalidParameter as error:
        raise ConfigInvalid(f"vendor_accounts {account.name}: api_key: {error.what}") from None


def _assertion(account: Account, service: ServiceAccount) -> str:
    """What the token endpoint is shown. It takes some 25 ms, nearly all to read the key."""
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
        raise ConfigInvalid(f"vendor_accounts {account.name}: api_key: private_key is no RSA key") from None
