"""Sends emails to a mail server by SMTP."""

import re
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
    SMTPException,
    SMTPNotSupported,
    SMTPRecipientsRefused,
    SMTPResponse,
    SMTPResponseException,
    SMTPServerDisconnected,
    SMTPTimeoutError,
)

from streams.wire.errors import BackendUnavailable
from vendors.account import Account
from vendors.errors import Refused, TimedOut, Unreachable, VendorError
from vendors.http.transport import VendorHttp

_STEP_S = 10
_ACCEPT_S = 30
_QUIT_S = 1
_PERMANENT = 500
_LOST = "the connection was lost"
_ENHANCED = re.compile(r"\b[245]\.\d{1,3}\.\d{1,3}\b")


@dataclass(frozen=True, slots=True)
class SmtpOptions:
    tls: Literal["none", "starttls", "implicit"]
    username: str
    """Empty: no login. The password is the account's key."""
    own_host: str
    """The name of this server in its greeting."""


class RecipientRefused(BackendUnavailable):
    """The mail server knows that the address does not exist. Another attempt would have the same result."""


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


class SmtpClient:
    """A client of a mail server. The base URL of its account is `smtp://<host>:<port>`."""

    def __init__(self, _: VendorHttp | None, account: Account, options: SmtpOptions) -> None:
        self._account = account
        self._options = options

    async def send(self, message: EmailMessage) -> None:
        """Send a message over a new connection. Raises `VendorError`, and `RecipientRefused`.

        After `TimedOut`, which includes `MaybeAccepted`, the server may have accepted the message nevertheless.
        The errors contain the codes of the server's replies, but not their texts, which may repeat the address.
        """
        with _vendor_errors(self._account.name):
            await _send(self._connection(), message)

    async def check(self) -> None:
        """Connect as `send` does, with TLS and the login, and send nothing. Raises `VendorError`."""
        with _vendor_errors(self._account.name):
            connection = self._connection()
            try:
                await connection.connect()
                await connection.noop()
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
        raise _recipient_error(name, error) from None
    except SMTPTimeoutError:
        raise Unreachable(name, f"did not answer within {_STEP_S} s", retryable=True) from None
    except SMTPNotSupported:
        raise Refused(name, "does not support what the account needs: STARTTLS, or its login") from None
    except SMTPResponseException as error:
        raise _refusal(name, error) from None
    except ssl.SSLError as error:
        raise Unreachable(name, f"cannot be connected to by TLS: {error.reason}") from None
    except (SMTPException, OSError) as error:
        if type(error) is SMTPException and "STARTTLS" in str(error):
            raise Refused(name, "does not support STARTTLS, which the account needs") from None
        raise Unreachable(name, f"cannot be reached: {type(error).__name__}", retryable=True) from None


async def _send(connection: _Connection, message: EmailMessage) -> None:
    """Send a message. What follows its acceptance cannot fail, because the message would be sent again."""
    try:
        await connection.connect()
        await connection.send_message(message)
        with suppress(SMTPException, OSError):
            await connection.quit(timeout=_QUIT_S)
    finally:
        connection.close()


def _recipient_error(name: str, error: SMTPRecipientsRefused) -> BackendUnavailable:
    refused = error.recipients[0]
    if refused.code >= _PERMANENT:
        return RecipientRefused(f"{name} refused the recipient: {_code(refused.code, refused.message)}")
    return _refusal(name, refused)


def _refusal(name: str, error: SMTPResponseException) -> VendorError:
    what = "refused the login" if isinstance(error, SMTPAuthenticationError) else "refused the email"
    return Refused(name, f"{what}: {_code(error.code, error.message)}", retryable=error.code < _PERMANENT)


def _code(code: int, text: str) -> str:
    """Return the codes of a reply, such as `550 5.1.1`."""
    found = _ENHANCED.search(text)
    return f"{code} {found[0]}" if found else str(code)
