"""Calls to sign-in providers: queries and forms out, small JSON objects in.

Providers report refused proofs and their own failures in the same places: in responses with a 4xx status, or as
error codes inside 200 responses. `PlatformResponse.check` distinguishes them. Errors contain the provider's error
codes, but not its messages, because these may repeat a secret of the call.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

from streams.wire.damaged import json_object, leading_members
from streams.wire.errors import ConfigInvalid
from vendors.errors import Garbled, Refused, TimedOut
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import Incoming, VendorHttp
from vendors.signin.protocols import ProofRefused, SignInApp

CALL_S = 5
MAX_BODY_BYTES = 64 * 1024
_FORM = "application/x-www-form-urlencoded; charset=utf-8"
_NOT_JUDGED = frozenset({408, 429})
"""4xx statuses that ask the client to retry later. Their bodies are not read."""
_TOO_LONG = frozenset({414, 431})
"""Statuses for a URL or a header that is too long. Only proofs can be."""
_SHOWN_CODE = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_MIN_SECRET_CHARACTERS = 8
_PROOF = re.compile(r"[!-~]{1,16384}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """The `fields` that hold a provider's error codes, and the codes that do not refuse the proof.

    Any other code refuses the proof, even if it is unknown: if forged proofs counted as failures of the provider,
    they could open its circuit breaker.
    """

    fields: tuple[str, ...]
    busy: frozenset[str] = frozenset()
    """The provider failed or limits the rate. The same call may succeed later."""
    config: frozenset[str] = frozenset()
    """The provider does not accept our app, its secret or its signature."""
    success: frozenset[str] = frozenset({"", "0"})

    def of(self, value: Mapping[str, Any]) -> list[str]:
        """Return the error codes in `value`."""
        found = [value.get(name) for name in self.fields]
        codes = [str(code) for code in found if isinstance(code, str | int)]
        return [code for code in codes if code not in self.success]


@dataclass(frozen=True, slots=True)
class PlatformResponse:
    """A response with a 2xx or 4xx status. Its body may contain tokens."""

    platform: str
    status: int
    body: bytes = field(repr=False)
    sent: tuple[str, ...] = field(repr=False)
    """The values of the request. Those of at least eight characters count as secrets."""
    personal: bool = False
    """Whether the body contains texts that a person has chosen."""

    def value(self) -> dict[str, Any]:
        """Return the body as a JSON object, whatever its content type. Raise `VendorError` if it is none.

        If the body is personal and begins as an object, the person's texts may be what breaks it. Then the members
        before the fault are returned, as a `BrokenObject`. Anything else, such as the page of a gateway, is a
        failure of the provider.
        """
        value = json_object(self.body)
        if value is None and self.personal:
            value = leading_members(self.body)
        if value is not None:
            return value
        if self.status in _TOO_LONG:
            raise ProofRefused(f"{self.platform} answered {self.status}, because the proof is too long")
        if self.status >= 400:
            raise Refused(self.platform, f"answered {self.status}", vendor_status=self.status)
        raise Garbled(self.platform, "sent a response that is not a JSON object")

    def check(self, value: dict[str, Any], codes: ErrorCodes, *, proof: bool = True) -> dict[str, Any]:
        """Return `value` if it reports no error.

        Otherwise raise `Refused` if the provider is busy, `ConfigInvalid` if it does not accept our app, and
        `ProofRefused` for any other error, which a call about one person has. If the call is about no person
        (`proof` is false), any error is `Refused`.
        """
        found = codes.of(value)
        if not found:
            if self.status >= 400:
                raise Refused(self.platform, f"answered {self.status}", vendor_status=self.status)
            return value
        shown = " ".join(map(self._shown, found))
        if not codes.busy.isdisjoint(found):
            raise Refused(self.platform, f"is busy or limits the rate (error {shown})", retryable=True)
        if not proof:
            raise Refused(self.platform, f"refused the call (error {shown})", vendor_status=self.status)
        if not codes.config.isdisjoint(found):
            problem = f"the provider refuses client_id or its secret or key (error {shown})"
            raise ConfigInvalid(f"sign_in {self.platform}: {problem}")
        raise ProofRefused(f"{self.platform} refused the proof (error {shown})")

    def require_success(self, codes: ErrorCodes, *, proof: bool = True) -> dict[str, Any]:
        """Return the JSON object if it reports no error. See `check`."""
        return self.check(self.value(), codes, proof=proof)

    def _shown(self, code: str) -> str:
        secret = any(value in code for value in self.sent if len(value) >= _MIN_SECRET_CHARACTERS)
        return "unknown" if secret or _SHOWN_CODE.fullmatch(code) is None else code


async def get(
    http: VendorHttp,
    app: SignInApp,
    url: str,
    query: Mapping[str, str],
    *,
    bearer: str = "",
    repeat: Repeat = Repeat.SAFE,
    personal: bool = False,
) -> PlatformResponse:
    """Send a query, with `bearer` as an access token. A query that redeems a code must not be repeated.

    `personal`: the response contains texts that the person has chosen.
    """
    address = f"{url}?{urlencode(query)}" if query else url
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    call = Outgoing(app.platform, address, method="GET", headers=headers, repeat=repeat)
    return await _answer(http, call, (*query.values(), bearer), personal=personal)


async def post(
    http: VendorHttp,
    app: SignInApp,
    url: str,
    form: Mapping[str, str],
    *,
    repeat: Repeat = Repeat.NEVER,
    personal: bool = False,
) -> PlatformResponse:
    """Send a form. `personal`: the response contains texts that the person has chosen."""
    headers = {"Content-Type": _FORM}
    call = Outgoing(app.platform, url, headers=headers, body=urlencode(form).encode(), repeat=repeat)
    return await _answer(http, call, tuple(form.values()), personal=personal)


def sendable(app: SignInApp, name: Literal["code", "access_token"], value: str) -> str:
    """Return a field of a proof that a provider can have issued, and that may be sent in a URL or a header."""
    if _PROOF.fullmatch(value) is None:
        raise ProofRefused(f"{app.platform} cannot have issued this {name}")
    return value


async def _answer(http: VendorHttp, call: Outgoing, sent: tuple[str, ...], *, personal: bool) -> PlatformResponse:
    try:
        async with asyncio.timeout(CALL_S), http.stream(call) as response:
            return PlatformResponse(call.vendor, 200, await _body(response, cut=personal), sent, personal)
    except TimeoutError:
        raise TimedOut(call.vendor, f"did not answer within {CALL_S} s", retryable=True) from None
    except Refused as refused:
        status = refused.vendor_status or 0
        if 400 <= status < 500 and status not in _NOT_JUDGED:
            return PlatformResponse(call.vendor, status, refused.body, sent, personal)
        raise Refused(
            call.vendor,
            f"answered {status}",
            retryable=refused.retryable,
            retry_after_s=refused.retry_after_s,
            vendor_status=status,
        ) from None


async def _body(response: Incoming, *, cut: bool) -> bytes:
    """Return the body. If it is too long, it is cut or raises `Garbled`."""
    raw = bytearray()
    async with aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            raw += piece
            if len(raw) > MAX_BODY_BYTES:
                if cut:
                    return bytes(raw[:MAX_BODY_BYTES])
                raise Garbled(response.vendor, f"sent a response of more than {MAX_BODY_BYTES} bytes")
    return bytes(raw)
