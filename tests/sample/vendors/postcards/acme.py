"""Acme's API of printed postcards."""

from typing import Literal

from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.account import Account
from vendors.http.outgoing import MoneyCall, RepeatWithKey
from vendors.http.transport import VendorHttp

Paper = Literal["matte", "glossy"]


class _Order(Model):
    id: str


class AcmePostcards:
    def __init__(self, http: VendorHttp, account: Account, paper: Paper) -> None:
        self._http = http
        self._account = account
        self._paper = paper

    async def order(self, reference: str, *, text: str) -> str:
        """Order one postcard, however often this is called with its reference. Return the id of the order."""
        call = MoneyCall(
            self._account.platform,
            self._account.url("/orders"),
            headers=self._account.bearer(),
            body=dumps({"reference": reference, "text": text, "paper": self._paper}),
            repeat=RepeatWithKey(reference),
        )
        async with self._http.stream(call) as response:
            return (await response.value(_Order)).id
