"""Moves the clocks of the sandbox's platforms, for development servers."""

from streams.wire.codec import dumps
from vendors.account import Account
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp

CARD_ACCOUNT = "acct_sandbox"
"""The only account of the sandbox's card platform."""


class SandboxClock:
    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

    async def move(self, account_id: str, *, offset_s: float) -> None:
        """Set how far the clock of a platform's account is ahead of real time. Raises `VendorError`."""
        call = Outgoing(
            self._account.platform,
            self._account.url("/_sandbox/clock"),
            headers={"Content-Type": "application/json"},
            body=dumps({"account": account_id, "offset_s": offset_s}),
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call):
            pass
