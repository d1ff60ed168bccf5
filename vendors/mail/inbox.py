"""Reads the emails that the sandbox's mail server keeps, for development servers."""

from typing import Any
from urllib.parse import quote, urlencode

from streams.wire.model import Model
from vendors.account import Account
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp


class KeptMail(Model):
    id: str
    to: str
    subject: str
    text: str
    html: str
    headers: dict[str, Any]
    at: int
    """Unix milliseconds."""


class KeptMails(Model):
    messages: list[KeptMail]


class KeptSource(Model):
    source: str


class InboxClient:
    def __init__(self, http: VendorHttp, account: Account, _: None) -> None:
        self._http = http
        self._account = account

    async def mails(self, to: str | None) -> list[KeptMail]:
        """Return the newest emails, newest first; with `to`, only those to that address. Raises `VendorError`."""
        query = "" if to is None else f"?{urlencode({'to': to})}"
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/mail/messages{query}"),
            method="GET",
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            return (await response.value(KeptMails)).messages

    async def source(self, mail_id: str) -> str:
        """Return an email as it arrived; empty if the inbox does not keep it any more. Raises `VendorError`."""
        call = Outgoing(
            self._account.platform,
            self._account.url(f"/mail/messages/{quote(mail_id)}/source"),
            method="GET",
            repeat=Repeat.SAFE,
        )
        async with self._http.stream(call) as response:
            return (await response.value(KeptSource)).source
