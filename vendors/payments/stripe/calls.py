"""Sends calls to Stripe through the gate of an account, and reads their responses."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from streams.wire.model import Model
from vendors.account import Account
from vendors.calls.gate import Gate
from vendors.errors import Refused
from vendors.http.outgoing import MoneyCall, ReadCall, RepeatWithKey
from vendors.http.transport import VendorHttp
from vendors.payments.stripe.errors import error_in, meaning_of
from vendors.payments.stripe.forms import Value, form_encoded

VERSION = "2025-03-31.basil"
_WITHIN_S = 15
"""The time for a call, with the wait for a slot of the gate."""

M = TypeVar("M", bound=Model)


class StripeCalls:
    """Calls of one account. Each passes the gate of the account.

    All calls raise `VendorError` if Stripe fails or refuses. After `TimedOut` and `Unreachable`, Stripe may have
    executed the call.
    """

    def __init__(self, http: VendorHttp, account: Account, gate: Gate) -> None:
        self._http = http
        self._account = account
        self._gate = gate

    async def get(self, path: str, query: Mapping[str, Value], model: type[M]) -> M:
        encoded = f"?{form_encoded(query)}" if query else ""
        url = self._account.url(f"/v1/{path}{encoded}")
        return await self._send(ReadCall(self._account.platform, url, headers=self._headers()), model)

    async def post(self, path: str, key: str, fields: Mapping[str, Value], model: type[M]) -> M:
        return await self._send(self._posted(path, key, fields), model)

    async def delete(self, path: str, key: str, model: type[M]) -> M:
        call = MoneyCall(
            self._account.platform,
            self._account.url(f"/v1/{path}"),
            method="DELETE",
            headers=self._headers(),
            repeat=RepeatWithKey(key),
        )
        return await self._send(call, model)

    async def post_intent(self, path: str, key: str, fields: Mapping[str, Value], model: type[M]) -> M:
        """Like `post`. A declined card is not an error: its intent remains, and can be confirmed again."""
        return await self._send(self._posted(path, key, fields), model, is_intent=True)

    def _posted(self, path: str, key: str, fields: Mapping[str, Value]) -> MoneyCall:
        return MoneyCall(
            self._account.platform,
            self._account.url(f"/v1/{path}"),
            headers={**self._headers(), "Content-Type": "application/x-www-form-urlencoded"},
            body=form_encoded(fields).encode(),
            repeat=RepeatWithKey(key),
        )

    async def _send(self, call: MoneyCall | ReadCall, model: type[M], *, is_intent: bool = False) -> M:
        platform = self._account.platform
        return await self._gate.call(
            platform, lambda: self._answer(call, model, is_intent=is_intent), within_s=_WITHIN_S
        )

    async def _answer(self, call: MoneyCall | ReadCall, model: type[M], *, is_intent: bool) -> M:
        """Send a call. The gate sees what a refusal means: a declined card is not a failure of the account."""
        try:
            async with self._http.stream(call) as response:
                return await response.value(model)
        except Refused as refused:
            if is_intent and (declined := _declined(refused, model)) is not None:
                return declined
            if is_intent and refused.vendor_status == 402:
                raise  # A refusal of the card without the intent is a fault of the platform.
            raise meaning_of(refused) from None

    def _headers(self) -> dict[str, str]:
        return {**self._account.bearer(), "Stripe-Version": VERSION}


def _declined(refused: Refused, model: type[M]) -> M | None:
    """Return the intent in the error of a declined card."""
    if refused.vendor_status != 402:
        return None
    error = error_in(refused)
    try:
        return model.model_validate(error.payment_intent or error.setup_intent)
    except ValidationError:
        return None


def part(text: str) -> str:
    """Return an id as a part of a path, which it cannot leave."""
    return quote(text, safe="")
