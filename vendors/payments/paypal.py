"""Calls to PayPal's API for one app of a merchant: access tokens, idempotency keys and errors."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary

from pydantic import Field

from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import sha256_hex
from streams.wire.model import Model
from vendors.account import Account
from vendors.errors import Refused
from vendors.http.outgoing import MoneyCall, ReadCall, RepeatWithKey
from vendors.http.transport import VendorHttp
from vendors.payments.paypal_errors import refused
from vendors.payments.paypal_fields import PayPalObject

BASE_URL = "https://api-m.paypal.com"
KEY_HEADER = "PayPal-Request-Id"
_RENEW_S = 60
"""A token is renewed this many seconds before it expires."""
_MAX_TOKENS = 1000
_UNAUTHORIZED = 401

M = TypeVar("M", bound=Model)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PayPalApp:
    """Our app at PayPal. Its secret is the key of the account."""

    client_id: str


class _Reply(Protocol):
    """A response without an error."""

    async def value(self, model: type[M]) -> M: ...


class _TokenReply(PayPalObject):
    access_token: str = Field(min_length=1)
    expires_in: int


class _Token:
    """The access token of one app. Concurrent calls share one request for it."""

    def __init__(self) -> None:
        self.fetching = asyncio.Lock()
        self.text = ""
        self.until = 0.0


_tokens: WeakKeyDictionary[VendorHttp, dict[str, _Token]] = WeakKeyDictionary()
"""Tokens are kept per `VendorHttp`, because a `PayPal` lives only as long as one call through its gate."""


class PayPal:
    """A client of PayPal. The functions of the modules `paypal_*` are the calls that it can make.

    All calls raise `VendorError`: `PayPalRefused` if PayPal has answered with an error. They raise `ConfigInvalid`
    if PayPal does not accept the app's id and secret.
    """

    def __init__(self, http: VendorHttp, account: Account, app: PayPalApp) -> None:
        self._http = http
        self._account = account
        secret = account.api_key.get_secret_value() if account.api_key else ""
        self._login = b64encode(f"{app.client_id}:{secret}".encode()).decode()
        tokens = _tokens.setdefault(http, {})
        if len(tokens) >= _MAX_TOKENS:
            tokens.clear()
        self._token = tokens.setdefault(sha256_hex(f"{account.base_url} {self._login}".encode()), _Token())

    @property
    def vendor(self) -> str:
        return self._account.platform

    async def log_in(self) -> None:
        """Get an access token unless there is one. Raises `ConfigInvalid` if PayPal does not accept the app."""
        await self._bearer()

    async def get(self, path: str, model: type[M], query: Mapping[str, str] | None = None) -> M:
        """Read an object."""
        return await self._send(lambda bearer: self._read(path, bearer, query), lambda reply: reply.value(model))

    async def ask(self, path: str, body: object, model: type[M]) -> M:
        """Send a POST that changes nothing at PayPal, and return the response."""
        return await self._send(lambda bearer: self._question(path, bearer, body), lambda reply: reply.value(model))

    async def post(self, key: str, path: str, body: object, model: type[M]) -> M:
        """Send a POST that PayPal executes once for all calls with the same `key`, and return the response."""
        return await self._send(
            lambda bearer: self._move(key, path, bearer, body), lambda reply: reply.value(model)
        )

    async def command(self, key: str, path: str, body: object) -> None:
        """Send a POST that PayPal executes once for all calls with the same `key`. The response has no content."""
        await self._send(lambda bearer: self._move(key, path, bearer, body), _nothing)

    async def _send(
        self, call: Callable[[str], MoneyCall | ReadCall], read: Callable[[_Reply], Awaitable[Result]]
    ) -> Result:
        """Send a call, and return the result of `read` for its response. A refused access token is renewed once."""
        bearer = await self._bearer()
        try:
            return await self._once(call(bearer), read)
        except Refused as error:
            if error.vendor_status != _UNAUTHORIZED:
                raise
        self._forget(bearer)
        return await self._once(call(await self._bearer()), read)

    async def _once(self, call: MoneyCall | ReadCall, read: Callable[[_Reply], Awaitable[Result]]) -> Result:
        try:
            async with self._http.stream(call) as reply:
                return await read(reply)
        except Refused as error:
            raise refused(error) from None

    def _read(self, path: str, bearer: str, query: Mapping[str, str] | None) -> ReadCall:
        url = self._account.url(f"{path}?{urlencode(query)}" if query else path)
        return ReadCall(self.vendor, url, headers=_headers(bearer))

    def _question(self, path: str, bearer: str, body: object) -> ReadCall:
        return ReadCall(
            self.vendor, self._account.url(path), method="POST", headers=_headers(bearer), body=dumps(body)
        )

    def _move(self, key: str, path: str, bearer: str, body: object) -> MoneyCall:
        return MoneyCall(
            self.vendor,
            self._account.url(path),
            headers={**_headers(bearer), "Prefer": "return=representation"},
            body=dumps(body),
            repeat=RepeatWithKey(key, KEY_HEADER),
        )

    async def _bearer(self) -> str:
        async with self._token.fetching:
            if self._token.until < time.monotonic():
                await self._fetch_token()
            return self._token.text

    def _forget(self, bearer: str) -> None:
        if bearer == self._token.text:
            self._token.until = 0.0

    async def _fetch_token(self) -> None:
        call = ReadCall(
            self.vendor,
            self._account.url("/v1/oauth2/token"),
            method="POST",
            headers={
                "Authorization": f"Basic {self._login}",
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
            body=b"grant_type=client_credentials",
        )
        asked_at = time.monotonic()
        try:
            token = await self._once(call, lambda reply: reply.value(_TokenReply))
        except Refused as error:
            if error.vendor_status != _UNAUTHORIZED:
                raise
            name = self._account.name
            raise ConfigInvalid(f"{self.vendor} {name}: client_id or client_secret is not accepted") from None
        self._token.text, self._token.until = token.access_token, asked_at + token.expires_in - _RENEW_S


def path_of(collection: str, object_id: str, action: str = "") -> str:
    """Return the path of an object, whose id may come from a client."""
    return f"{collection}/{quote(object_id, safe='')}{action}"


def _headers(bearer: str) -> dict[str, Any]:
    return {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}


async def _nothing(_: _Reply) -> None:
    return None
