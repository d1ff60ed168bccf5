"""Reads the text messages that the sandbox keeps, for development servers."""

from urllib.parse import urlencode

from streams.wire.model import Model
from vendors.account import Account
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp

_KEY = "default"
"""The key of the webhook in the config of development servers."""


class KeptMessage(Model):
    id: str
    app: str
    to: str
    text: str
    code: str
    at: int
    """Unix milliseconds."""


class SmsInbox:
    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

    async def messages(self, to: str | None) -> list[KeptMessage]:
        """Return the messages, newest first; with `to`, only those to that number. Raises `VendorError`."""
        query = "" if to is None else f"?{urlencode({'to': to})}"
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/sms/{_KEY}/messages{query}"),
            method="GET",
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            return [KeptMessage.of(message) for message in await response.json()]
