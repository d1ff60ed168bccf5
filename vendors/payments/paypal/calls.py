"""Sends calls to PayPal for one app of a merchant: the gate, access tokens, idempotency keys and errors."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

from pydantic import Field

from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import sha256_hex
from streams.wire.model import Model
from vendors.account import Account
from vendors.calls.gate import Gate
from vendors.errors import Refused
from vendors.http.kept import Kept
from vendors.http.outgoing import MoneyCall, ReadCall, RepeatWithKey
from vendors.http.transport import VendorHttp
from vendors.payments.paypal.errors import refused
from vendors.payments.paypal.fields import PayPalObject

KEY_HEADER = "PayPal-Request-Id"
WITHIN_S = 15
_RENEW_S = 60
"""A token is renewed this many seconds before it expires."""
_MAX_TOKENS = 1000
_UNAUTHORIZED = 401

M = TypeVar("M", bound=Model)
Result = TypeVar("Result")
Step = Callable[[], Awaitable[None]]
"""A step right before a call is sent. If it fails, nothing is sent."""
_WithToken = Callable[[str], MoneyCall | ReadCall]
"""Makes a call with an access token."""


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


_TOKENS = Kept(_Token, most=_MAX_TOKENS)


class PayPalCalls:
    """Calls of our app `client_id`, whose secret is the key of the account. Each passes the gate of the app.

    All calls raise `VendorError`: `PayPalRefused` if PayPal has answered with an error. They raise `ConfigInvalid`
    if PayPal does not accept the app's id and secret. After `TimedOut` and `Unreachable`, PayPal may have executed
    the call.
    """

    def __init__(
        self, http: VendorHttp, account: Account, gate: Gate, *, client_id: str, within_s: float = WITHIN_S
    ) -> None:
        """`within_s` limits the wait for a slot of the gate and the call together."""
        self._http = http
        self._account = account
        self._gate = gate
        self._within_s = within_s
        self.label = f"{client_id} at {account.base_url}"
        """The account, for operators. It does not know the payouts that another account was asked for."""
        secret = account.api_key.get_secret_value() if account.api_key else ""
        self._login = b64encode(f"{client_id}:{secret}".encode()).decode()
        self._token = _TOKENS.of(http, sha256_hex(f"{account.base_url} {self._login}".encode()))

    @property
    def vendor(self) -> str:
        return self._account.platform

    @property
    def name(self) -> str:
        """The name of the config."""
        return self._account.name

    async def get(self, path: str, model: type[M], query: Mapping[str, str] | None = None) -> M:
        """Read an object."""
        return await self._call(lambda bearer: self._get(path, bearer, query), lambda reply: reply.value(model))

    async def ask(self, path: str, body: object, model: type[M]) -> M:
        """Send a POST that changes nothing at PayPal, and return the response."""
        return await self._call(
            lambda bearer: self._unkeyed_post(path, bearer, body), lambda reply: reply.value(model)
        )

    async def post(self, key: str, path: str, body: object, model: type[M], *, before: Step | None = None) -> M:
        """Send a POST that PayPal executes once for all calls with the same `key`, and return the response.

        `before` is awaited once PayPal has accepted the app's id and secret, and the gate has admitted the call.
        """
        return await self._call(
            lambda bearer: self._keyed_post(key, path, bearer, body), lambda reply: reply.value(model), before
        )

    async def command(self, key: str, path: str, body: object) -> None:
        """Send a POST that PayPal executes once for all calls with the same `key`. The response has no content."""
        await self._call(lambda bearer: self._keyed_post(key, path, bearer, body), _nothing)

    async def _call(
        self, call: _WithToken, read: Callable[[_Reply], Awaitable[Result]], before: Step | None = None
    ) -> Result:
        """Send a call through the gate, and return the result of `read` for its response."""
        return await self._gate.call(self.vendor, lambda: self._send(call, read, before), within_s=self._within_s)

    async def _send(
        self, call: _WithToken, read: Callable[[_Reply], Awaitable[Result]], before: Step | None
    ) -> Result:
        """Send a call. A refused access token is renewed once."""
        bearer = await self._bearer()
        if before is not None:
            await before()
        try:
            return await self._send_once(call(bearer), read)
        except Refused as error:
            if error.vendor_status != _UNAUTHORIZED:
                raise
        self._forget(bearer)
        return await self._send_once(call(await self._bearer()), read)

    async def _send_once(self, call: MoneyCall | ReadCall, read: Callable[[_Reply], Awaitable[Result]]) -> Result:
        try:
            async with self._http.stream(call) as reply:
                return await read(reply)
        except Refused as error:
            raise refused(error) from None

    def _get(self, path: str, bearer: str, query: Mapping[str, str] | None) -> ReadCall:
        url = self._account.url(f"{path}?{urlencode(query)}" if query else path)
        return ReadCall(self.vendor, url, headers=_headers(bearer))

    def _unkeyed_post(self, path: str, bearer: str, body: object) -> ReadCall:
        return ReadCall(
            self.vendor, self._account.url(path), method="POST", headers=_headers(bearer), body=dumps(body)
        )

    def _keyed_post(self, key: str, path: str, bearer: str, body: object) -> MoneyCall:
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
            token = await self._send_once(call, lambda reply: reply.value(_TokenReply))
        except Refused as error:
            if error.vendor_status != _UNAUTHORIZED:
                raise
            raise ConfigInvalid(f"{self.vendor} {self.name}: client_id or client_secret is not accepted") from None
        self._token.text, self._token.until = token.access_token, asked_at + token.expires_in - _RENEW_S


def path_of(collection: str, object_id: str, action: str = "") -> str:
    """Return the path of an object, whose id may come from a client."""
    return f"{collection}/{quote(object_id, safe='')}{action}"


def _headers(bearer: str) -> dict[str, Any]:
    return {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}


async def _nothing(_: _Reply) -> None:
    return None
