"""A mail server of the tests at a socket, whose answers a test chooses."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

ACCEPT = "250 OK"
BUSY = "451 4.3.0 try again later"
FILTERED = "554 5.7.1 looks like spam"
WRONG_PASSWORD = "wrong"


def _authenticate(
    _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, login: LoginPassword
) -> AuthResult:
    return AuthResult(success=login.password != WRONG_PASSWORD.encode())


class SmtpServer:
    """Keeps the emails that it accepts. `answer` returns its answer to one, or `None` to end the connection."""

    def __init__(self) -> None:
        self.port = 0
        self.accepted: list[EmailMessage] = []
        self.connections = 0
        self.answer: Callable[[EmailMessage], str | None] = lambda _: ACCEPT
        self.refused: set[str] = set()
        """Recipients that do not exist."""
        self.to_sender = self.to_recipient = ACCEPT
        """The answers to all senders, and to all recipients that exist."""
        self.silent: set[str] = set()
        """Recipients whose emails are accepted without an answer, because the connection is lost."""

    @property
    def ids(self) -> list[str]:
        return [mail["Message-ID"] for mail in self.accepted]

    async def handle_EHLO(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.connections += 1
        session.host_name = hostname
        return responses

    async def handle_MAIL(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self.to_sender

    async def handle_RCPT(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 5.1.1 unknown"
        if self.to_recipient == ACCEPT:
            envelope.rcpt_tos.append(address)
        return self.to_recipient

    async def handle_DATA(  # noqa: N802 - aiosmtpd names it
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        mail: EmailMessage = message_from_bytes(envelope.original_content or b"", policy=policy.default)
        answer = self.answer(mail)
        if answer == ACCEPT:
            self.accepted.append(mail)
        if answer is None or self.silent & set(envelope.rcpt_tos):
            server.transport.abort()
            return BUSY
        return answer

    @asynccontextmanager
    async def listening(
        self,
        *,
        starttls: ssl.SSLContext | None = None,
        implicit_tls: ssl.SSLContext | None = None,
        smtputf8: bool = True,
    ) -> AsyncIterator[None]:
        """Accept connections during the block, at the same port as before, and logins without `WRONG_PASSWORD`."""
        protocol = lambda: SMTP(  # noqa: E731
            self,
            hostname="mail.example.com",
            enable_SMTPUTF8=smtputf8,
            tls_context=starttls,
            authenticator=_authenticate,
            auth_require_tls=False,
        )
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", self.port, ssl=implicit_tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
