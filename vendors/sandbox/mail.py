"""A mail server that keeps the emails that it gets instead of delivering them.

`GET /mail/messages?to=<address>` lists them, the newest first. `GET /mail/messages/<id>/source` returns one as it
arrived. A login whose name is a key of the sandbox (see `vendors/sandbox/faults.py`) selects a fault:
`unauthorized` refuses the login, `unavailable` defers each mail. Emails to some local parts are refused: see
`_REFUSED` and `_REFUSED_AFTER_DATA`. `nobody+1` is refused like `nobody`. A second port serves the same inbox
without SMTPUTF8.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiohttp import web
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from streams.wire.codec import dumps, now_ms
from streams.wire.ids import new_id
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.sandbox import Sandbox

_SHOWN = 200
_SOURCE = "source"
_MAX_BYTES = 8 * 1024 * 1024
_REFUSED = {
    "nobody": "550 5.1.1 nobody receives mail here",
    "later": "450 4.2.1 this mailbox gets too many mails",
    "odd": "553 5.1.3 such mailboxes do not exist",
}
"""Replies to the command RCPT, by the local part of the recipient."""
_REFUSED_AFTER_DATA = {
    "full": "552 5.2.2 this mailbox is full",
    "filtered": "554 5.7.1 this looks like spam",
}
"""Replies to a complete email, by the local part of its recipient."""


class _Inbox:
    """The handler of aiosmtpd."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._mails = sandbox.mails

    async def handle_RCPT(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if reply := _REFUSED.get(_mailbox(address)):
            return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        fault: Any = session.auth_data
        if fault == Fault.UNAVAILABLE:
            return "451 4.3.0 try again later"
        for to in envelope.rcpt_tos:
            if reply := _REFUSED_AFTER_DATA.get(_mailbox(to)):
                return reply
        self._mails.extendleft(_kept(envelope.original_content or b"", to) for to in envelope.rcpt_tos)
        return "250 OK"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        fault = KeyOptions.of_key(data.login.decode()).fault if isinstance(data, LoginPassword) else None
        if fault == Fault.UNAUTHORIZED:
            return AuthResult(success=False, handled=False)
        return AuthResult(success=True, auth_data=fault)


def _mailbox(address: str) -> str:
    """Return the local part of an address without its tag."""
    return address.rpartition("@")[0].partition("+")[0].lower()


def _kept(source: bytes, to: str) -> dict[str, Any]:
    message: EmailMessage = message_from_bytes(source, policy=policy.default)
    bodies = {part: message.get_body((part,)) for part in ("plain", "html")}
    plain, html = ("" if body is None else body.get_content().replace("\r\n", "\n") for body in bodies.values())
    return {
        "id": new_id(),
        "to": to,
        "subject": str(message["Subject"] or ""),
        "text": plain,
        "html": html,
        "headers": {name: str(value) for name, value in message.items()},
        "at": now_ms(),
        _SOURCE: source.decode(errors="replace").replace("\r\n", "\n"),
    }


@asynccontextmanager
async def mail_server(sandbox: Sandbox, *, host: str, smtputf8: bool = True) -> AsyncIterator[int]:
    """Accept emails during the block. Yield the port."""
    inbox = _Inbox(sandbox)

    def protocol() -> SMTP:
        return SMTP(
            inbox,
            data_size_limit=_MAX_BYTES,
            enable_SMTPUTF8=smtputf8,
            hostname="sandbox",
            authenticator=inbox.authenticate,
            auth_require_tls=False,
        )

    server = await asyncio.get_running_loop().create_server(protocol, host, 0)
    try:
        port: int = server.sockets[0].getsockname()[1]
        yield port
    finally:
        server.close()


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    async def listed(request: web.Request) -> web.Response:
        to = request.query.get("to")
        found = [mail for mail in sandbox.mails if to is None or mail["to"].lower() == to.lower()]
        shown = [{name: value for name, value in mail.items() if name != _SOURCE} for mail in found[:_SHOWN]]
        return web.Response(body=dumps({"messages": shown}), content_type="application/json")

    async def source(request: web.Request) -> web.Response:
        found = (mail[_SOURCE] for mail in sandbox.mails if mail["id"] == request.match_info["id"])
        return web.Response(body=dumps({"source": next(found, "")}), content_type="application/json")

    return [web.get("/mail/messages", listed), web.get("/mail/messages/{id}/source", source)]
