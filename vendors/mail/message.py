"""Builds emails: headers, a part with text, and one with HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime


class _Unfolded(UnstructuredHeader, BaseHeader):
    """A header of one line. The library would encode parts of a URL that is longer than a line."""

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


_HEADERS = HeaderRegistry()
_HEADERS.map_to_type("list-unsubscribe", _Unfolded)
_POLICY = SMTP.clone(header_factory=_HEADERS)


@dataclass(frozen=True, slots=True)
class Mail:
    mail_id: str
    """The same in every attempt to send the email."""
    sender: str
    """The header `From`: an address, with or without a name."""
    to: str
    subject: str
    text: str
    html: str = ""
    language: str = ""
    """The language tag of the text, if it is known."""
    reply_to: str = ""
    unsubscribe: Sequence[str] = ()
    """URLs that unsubscribe the recipient."""
    one_click: bool = False
    """Whether a POST request to the last of these URLs unsubscribes (RFC 8058)."""


def build(mail: Mail, *, host: str, at: datetime) -> EmailMessage:
    """Return the message of an email that `host` sends. Raises `ValueError` for a line break in a header."""
    message = EmailMessage(policy=_POLICY)
    message["From"] = mail.sender
    message["To"] = mail.to
    message["Subject"] = mail.subject
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{mail.mail_id}@{host}>"
    message["Auto-Submitted"] = "auto-generated"
    if mail.reply_to:
        message["Reply-To"] = mail.reply_to
    if mail.unsubscribe:
        message["List-Unsubscribe"] = ", ".join(f"<{url}>" for url in mail.unsubscribe)
    if mail.one_click:
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    _add_parts(message, mail)
    if mail.language:  # The calls above move such headers to a part.
        message["Content-Language"] = mail.language
    return message


def _add_parts(message: EmailMessage, mail: Mail) -> None:
    if mail.text:
        message.set_content(mail.text)
    if mail.html and mail.text:
        message.add_alternative(mail.html, subtype="html")
    elif mail.html or not mail.text:
        message.set_content(mail.html, subtype="html" if mail.html else "plain")
