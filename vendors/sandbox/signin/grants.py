"""Codes and access tokens that the sandbox's sign-in providers issue, and the endpoint that issues them.

`POST /<provider>/_issue` takes the place of the page on which a person signs in. Its body is an `Issue`; the answer
has the fields that a client would send to prove the identity.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from vendors.sandbox.calls import Call, Dialect, Refusal
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.signin.garbled import Garbling, garbled

APP = "sandbox-app"
SECRET = "sandbox-secret"  # noqa: S105 - public, and only the sandbox accepts it
REDIRECT_URI = "https://app.test/callback"
"""The registration of all apps. A call with another secret or another address is refused."""
CODE_S = 300
_MAX_GRANTS = 100_000

Reason = Literal["unknown", "used", "expired", "other_app", "secret"]
"""Why a code or a token is refused. `secret`: the secret of the app is missing or wrong."""


class Person(Model):
    """The profile of a person. Each provider sends the fields that it knows, in its own form."""

    name: str = "Mei Lin"
    avatar: str = "https://pictures.test/mei.png"
    email: str = "mei@example.test"
    email_verified: bool = True
    """Whether the provider has verified the address. Not all providers report this."""
    gender: Literal["", "male", "female"] = "female"
    region: str = "CN"
    province: str = "北京"
    city: str = "朝阳区"


class Issue(KeyOptions):
    """The body of `_issue`: who signs in to which app, and the fault of calls that use the code or token."""

    subject: str = Field(min_length=1, max_length=200)
    """The person's id at the provider."""
    app: str = APP
    profile: Person = Field(default_factory=Person)
    age_s: int = 0
    """How long ago the code or token was issued. Codes live for 300 seconds."""
    expires_in: int = 7200
    """The lifetime of the access token in seconds."""
    fault_at: Literal["", "token", "check", "profile"] = ""
    """The stage of the calls with the fault. Empty: all."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Fields that are added to, or replace fields of, the answer that identifies the person."""
    garbling: Garbling = ""
    """How the profile is damaged by the person's name."""

    def garble(self, raw: bytes) -> bytes:
        """Return the JSON of a profile with the damage that was chosen."""
        return garbled(raw, self.garbling, name=self.profile.name)


@dataclass(slots=True)
class Grant:
    """A code or a token, with the `Issue` that created it."""

    issue: Issue
    issued_at: float
    used: bool = False
    calls: int = 0

    @property
    def left_s(self) -> int:
        """The seconds until the access token expires."""
        return int(self.issued_at + self.issue.expires_in - time.time())


class Grants:
    """The newest codes and tokens of one provider. `refusal` returns its error response for a reason."""

    def __init__(self, vendor: str, refusal: Callable[[Reason], Refusal], *, proof: str = "access_token") -> None:
        self._vendor = vendor
        self._refusal = refusal
        self._proof = proof
        self._grants: OrderedDict[str, Grant] = OrderedDict()

    def route(self) -> web.RouteDef:
        return web.post(f"/{self._vendor}/_issue", self._issue)

    async def _issue(self, request: web.Request) -> web.Response:
        body = loads_request(await request.read())
        if not isinstance(body, dict):
            raise InvalidParameter("body must be an object")
        issue = Issue.of(body)
        answer = {self._proof: self.issue(issue), "open_id": issue.subject}
        return web.Response(body=dumps(answer), content_type="application/json")

    def issue(self, issue: Issue) -> str:
        """Return a new code or access token."""
        return self._store(Grant(issue, time.time() - issue.age_s))

    def _store(self, grant: Grant) -> str:
        credential = f"{self._vendor}-{token_hex(16)}"
        self._grants[credential] = grant
        while len(self._grants) > _MAX_GRANTS:
            self._grants.popitem(last=False)
        return credential

    async def redeem(self, call: Call, code: str, *, app: str, secret: str = SECRET) -> tuple[Grant, str]:
        """Return the grant of a code and a new access token. Raise `Refusal` if the code is not accepted.

        Providers whose apps sign calls instead of sending a secret check the signature before.
        """
        grant = self._grants.get(code)
        await self._apply_fault(call, grant)
        if secret != SECRET:
            raise self._refusal("secret")
        if grant is None:
            raise self._refusal("unknown")
        if grant.issue.app != app:
            raise self._refusal("other_app")
        if grant.used:
            raise self._refusal("used")
        if time.time() - grant.issued_at > CODE_S:
            raise self._refusal("expired")
        grant.used = True
        redeemed = Grant(grant.issue, time.time())
        return redeemed, self._store(redeemed)

    async def holder(self, call: Call, access_token: str) -> Grant:
        """Return the grant of an access token. Raise `Refusal` if there is none or it has expired."""
        grant = self._grants.get(access_token)
        await self._apply_fault(call, grant)
        if grant is None:
            raise self._refusal("unknown")
        if grant.left_s <= 0:
            raise self._refusal("expired")
        return grant

    async def _apply_fault(self, call: Call, grant: Grant | None) -> None:
        """Apply the fault that was chosen for the grant, unless the sandbox has chosen another one for the call."""
        if grant is not None and call.entry.stage == "profile":
            call.garble = grant.issue.garble
        if grant is None or call.fault is not None or grant.issue.fault_at not in {"", call.entry.stage}:
            return
        call.key_options = grant.issue
        if grant.issue.has_fault(grant.calls):
            call.fault = grant.issue.fault
            call.entry.fault = grant.issue.fault
        grant.calls += 1
        await call.apply_early_fault()


def dialect(vendor: str, *, busy: Refusal, limited: Refusal, denied: Refusal) -> Dialect:
    """Return the dialect of a provider, whose calls have no API key.

    The responses are those of an overloaded, a rate-limiting and a refusing provider.
    """
    error = Refusal(500, busy.body, busy.headers)
    responses = {
        Fault.UNAVAILABLE: busy,
        Fault.RATE_LIMITED: limited,
        Fault.OUT_OF_QUOTA: limited,
        Fault.UNAUTHORIZED: denied,
        Fault.SERVER_ERROR: error,
    }
    return Dialect(vendor, _no_key, lambda fault, _: responses[fault])


def _no_key(request: web.Request) -> str:
    return "sandbox"


async def form(call: Call) -> Mapping[str, str]:
    """Return the form of a request. Raise `Refusal` if it has another content type."""
    if call.request.content_type != "application/x-www-form-urlencoded":
        raise Refusal(415, {"error": "unsupported_media_type"})
    return {name: value for name, value in (await call.request.post()).items() if isinstance(value, str)}


def is_beijing_time(text: str) -> bool:
    """Return whether a time without a zone is the current time in Beijing. Providers tolerate ten minutes."""
    try:
        at = datetime.strptime(f"{text}+0800", "%Y-%m-%d %H:%M:%S%z")
    except ValueError:
        return False
    return abs(datetime.now(UTC) - at) <= timedelta(minutes=10)


def bearer(call: Call) -> str:
    return call.request.headers.get("Authorization", "").removeprefix("Bearer ")


def as_number(text: str) -> int | str:
    """Return an id as a number, as the provider sends it, if it is numeric."""
    return int(text) if text.isascii() and text.isdecimal() else text
