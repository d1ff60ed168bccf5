"""Sends emails to a mail server by SMTP."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, Literal
from urllib.parse import urlsplit

from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPDataError,
    SMTPException,
    SMTPNotSupported,
    SMTPRecipientsRefused,
    SMTPResponse,
    SMTPResponseException,
    SMTPSenderRefused,
    SMTPServerDisconnected,
    SMTPTimeoutError,
)

from streams.wire.errors import BackendUnavailable
from vendors.account import Account
from vendors.errors import Refused, TimedOut, Unreachable, VendorError
from vendors.http.transport import VendorHttp
from vendors.mail.refusals import PERMANENT, Command, Reply, fault_of

_STEP_S = 10
_ACCEPT_S = 30
_QUIT_S = 1
_LOST = "the connection was lost"


@dataclass(frozen=True, slots=True)
class SmtpOptions:
    tls: Literal["none", "starttls", "implicit"]
    username: str
    """Empty: no login. The password is the account's key."""
    own_host: str
    """The name of this server in its greeting."""


class RecipientRefused(BackendUnavailable):
    """The mail server sends nothing to the address. Another attempt would have the same result.

    Like the two errors below, it is no `VendorError`, because it does not count as a failure of the account.
    """


class RecipientDeferred(BackendUnavailable):
    """The mail server sends nothing to the address for now. A later attempt may succeed."""


class ContentRefused(BackendUnavailable):
    """The mail server refuses what the email contains. Another server may accept it."""


class MaybeAccepted(TimedOut):
    """The mail server has received the email but has not said whether it accepts it. It may deliver it."""


class _Connection(SMTP):
    """aiosmtplib forgets its protocol and what the server supports when the connection is lost.

    Its next step would then say that the server does not support it, or fail with an `AttributeError`.
    """

    def supports_extension(self, extension: str, /) -> bool:
        if self.protocol is None:
            raise SMTPServerDisconnected(_LOST)
        return super().supports_extension(extension)

    async def starttls(self, *args: Any, **options: Any) -> SMTPResponse:
        try:
            return await super().starttls(*args, **options)
        except AttributeError as error:
            if self.protocol is not None:
                raise
            raise SMTPServerDisconnected(_LOST) from error

    async def data(self, message: str | bytes, /, **_: Any) -> SMTPResponse:
        try:
            return await super().data(message, timeout=_ACCEPT_S)
        except (SMTPServerDisconnected, SMTPTimeoutError, OSError) as error:
            raise _Unanswered from error


class _Unanswered(Exception):
    """The connection was lost, or nothing has arrived in time, after the command DATA."""


class _NoSmtputf8(Exception):
    """An address is not ASCII, and the server does not support SMTPUTF8."""


class SmtpClient:
    """A client of a mail server. The base URL of its account is `smtp://<host>:<port>`."""

    def __init__(self, _: VendorHttp | None, account: Account, options: SmtpOptions) -> None:
        self._account = account
        self._options = options

    async def send(self, message: EmailMessage, *, sender: str, to: str) -> None:
        """Send a message over a new connection. `sender` and `to` are the addresses of the envelope.

        Raises `VendorError` for faults of the account, `RecipientRefused`, `RecipientDeferred`, `ContentRefused`.
        After `TimedOut`, which includes `MaybeAccepted`, the server may have accepted the message nevertheless.
        The errors contain the codes of the server's replies, but not their texts, which may repeat the address.
        """
        with _vendor_errors(self._account.name):
            try:
                await _send(self._connection(), message, sender=sender, to=to)
            except _NoSmtputf8:
                raise _without_smtputf8(self._account.name, to) from None

    async def check(self, *, smtputf8: bool = False) -> None:
        """Connect as `send` does, with TLS and the login, and send nothing. Raises `VendorError`.

        `smtputf8`: whether the server must support SMTPUTF8.
        """
        with _vendor_errors(self._account.name):
            connection = self._connection()
            try:
                await connection.connect()
                await connection.noop()
                if smtputf8 and not connection.supports_extension("smtputf8"):
                    raise Refused(self._account.name, "does not support SMTPUTF8, which the account needs")
                with suppress(SMTPException, OSError):
                    await connection.quit(timeout=_QUIT_S)
            finally:
                connection.close()

    def _connection(self) -> "_Connection":
        options, secret = self._options, self._account.api_key
        server = urlsplit(self._account.base_url)
        return _Connection(
            hostname=server.hostname,
            port=server.port,
            use_tls=options.tls == "implicit",
            start_tls=options.tls == "starttls",
            username=options.username or None,
            password=secret.get_secret_value() if options.username and secret else None,
            local_hostname=options.own_host,
            timeout=_STEP_S,
        )


@contextmanager
def _vendor_errors(name: str) -> Iterator[None]:
    """Convert errors of the connection to the mail server `name`."""
    try:
        yield
    except _Unanswered:
        raise MaybeAccepted(name, "has not answered after it got the email", retryable=True) from None
    except SMTPRecipientsRefused as error:
        raise _refusal(name, "RCPT", error.recipients[0]) from None
    except (SMTPSenderRefused, SMTPDataError) as error:
        raise _refusal(name, "DATA" if isinstance(error, SMTPDataError) else "MAIL", error) from None
    except SMTPTimeoutError:
        raise Unreachable(name, f"did not answer within {_STEP_S} s", retryable=True) from None
    except SMTPNotSupported:
        raise Refused(name, "does not support what the account needs: STARTTLS, or its login") from None
    except SMTPResponseException as error:
        raise _account_error(name, Reply(error.code, error.message), error) from None
    except (SMTPException, OSError) as error:
        raise _unreachable(name, error) from None


def _unreachable(name: str, error: SMTPException | OSError) -> VendorError:
    if isinstance(error, ssl.SSLError):
        return Unreachable(name, f"refuses TLS: {error.reason}")
    if type(error) is SMTPException and "STARTTLS" in str(error):
        return Refused(name, "does not support STARTTLS, which the account needs")
    return Unreachable(name, f"cannot be reached: {type(error).__name__}", retryable=True)


async def _send(connection: _Connection, message: EmailMessage, *, sender: str, to: str) -> None:
    """Send a message. What follows its acceptance cannot fail, because the message would be sent again."""
    try:
        await connection.connect()
        try:
            await connection.send_message(message, sender=sender, recipients=[to])
        except SMTPNotSupported:
            raise _NoSmtputf8 from None
        with suppress(SMTPException, OSError):
            await connection.quit(timeout=_QUIT_S)
    finally:
        connection.close()


def _without_smtputf8(name: str, to: str) -> BackendUnavailable:
    if to.isascii():
        return Refused(name, "does not support SMTPUTF8, which the address of the sender needs")
    return RecipientRefused(f"{name} does not support SMTPUTF8, which the address of the recipient needs")


def _refusal(name: str, command: Command, error: SMTPResponseException) -> BackendUnavailable:
    reply = Reply(error.code, error.message)
    match fault_of(command, reply):
        case "recipient" if reply.code >= PERMANENT:
            return RecipientRefused(f"{name} refused the recipient: {reply.shown}")
        case "recipient":
            return RecipientDeferred(f"{name} refused the recipient for now: {reply.shown}")
        case "content":
            return ContentRefused(f"{name} refused the content: {reply.shown}")
        case "account":
            return _account_error(name, reply, error)


def _account_error(name: str, reply: Reply, error: SMTPResponseException) -> VendorError:
    what = "refused the login" if isinstance(error, SMTPAuthenticationError) else "refused the email"
    return Refused(name, f"{what}: {reply.shown}", retryable=reply.code < PERMANENT)
