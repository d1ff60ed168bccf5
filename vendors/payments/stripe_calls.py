"""Sends calls to Stripe and reads their responses."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from streams.wire.model import Model
from vendors.account import Account
from vendors.errors import Refused
from vendors.http.outgoing import MoneyCall, ReadCall, RepeatWithKey
from vendors.http.transport import VendorHttp
from vendors.payments.forms import Value, form_encoded
from vendors.payments.stripe_errors import error_in, meaning_of

VERSION = "2025-03-31.basil"

M = TypeVar("M", bound=Model)


class StripeCalls:
    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

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
        """Like `post`. The intent of a declined card, which remains and can be confirmed again, is no error."""
        try:
            return await self._request(self._posted(path, key, fields), model)
        except Refused as refused:
            if (declined := _declined(refused, model)) is not None:
                return declined
            # A refusal of the card without the intent is a fault of the platform.
            raise refused if refused.vendor_status == 402 else meaning_of(refused) from None

    def _posted(self, path: str, key: str, fields: Mapping[str, Value]) -> MoneyCall:
        return MoneyCall(
            self._account.platform,
            self._account.url(f"/v1/{path}"),
            headers={**self._headers(), "Content-Type": "application/x-www-form-urlencoded"},
            body=form_encoded(fields).encode(),
            repeat=RepeatWithKey(key),
        )

    async def _send(self, call: MoneyCall | ReadCall, model: type[M]) -> M:
        try:
            return await self._request(call, model)
        except Refused as refused:
            raise meaning_of(refused) from None

    async def _request(self, call: MoneyCall | ReadCall, model: type[M]) -> M:
        async with self._http.stream(call) as response:
            return await response.value(model)

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
