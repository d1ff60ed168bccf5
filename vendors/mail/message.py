"""Builds emails: headers, a part with text, and one with HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime
from typing import Self

from streams.wire.lines import is_line
from streams.wire.mailbox import Mailbox, written_mailbox, written_text


class _Written(str):
    """The value of a header, which is sent as it is. The library would read it, and write what it has read."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str, value: str) -> Self:
        written = super().__new__(cls, value)
        written.name = name
        return written

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {self}{policy.linesep}"


@dataclass(frozen=True, slots=True)
class Mail:
    mail_id: str
    """The same in every attempt to send the email."""
    sender: Mailbox
    to: str
    subject: str
    text: str
    html: str = ""
    language: str = ""
    """The language tag of the text, if it is known."""
    reply_to: Mailbox | None = None
    unsubscribe: Sequence[str] = ()
    """URLs that unsubscribe the recipient."""
    one_click: bool = False
    """Whether a POST request to the last of these URLs unsubscribes (RFC 8058)."""


def build(mail: Mail, *, host: str, at: datetime) -> EmailMessage:
    """Return the message of an email that `host` sends. Raises `ValueError` for a line break in a header."""
    message = EmailMessage(policy=SMTP)
    written = {
        "From": written_mailbox(mail.sender, header="From"),
        "To": written_mailbox(Mailbox("", mail.to), header="To"),
        "Subject": written_text(mail.subject, header="Subject"),
    }
    if mail.reply_to:
        written["Reply-To"] = written_mailbox(mail.reply_to, header="Reply-To")
    if mail.unsubscribe:
        written["List-Unsubscribe"] = _written_urls(mail.unsubscribe)
    for name, value in written.items():
        message[name] = _Written(name, value)
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{mail.mail_id}@{host}>"
    message["Auto-Submitted"] = "auto-generated"
    if mail.one_click:
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    _add_parts(message, mail)
    if mail.language:  # The calls above move such headers to a part.
        message["Content-Language"] = mail.language
    return message


def _written_urls(urls: Sequence[str]) -> str:
    """Return the value of `List-Unsubscribe` (RFC 2369), with a line for each URL: they must not be broken."""
    if not all(map(is_line, urls)):
        raise ValueError("List-Unsubscribe must be one line")
    return ",\r\n ".join(f"<{url}>" for url in urls)


def _add_parts(message: EmailMessage, mail: Mail) -> None:
    if mail.text:
        message.set_content(mail.text)
    if mail.html and mail.text:
        message.add_alternative(mail.html, subtype="html")
    elif mail.html or not mail.text:
        message.set_content(mail.html, subtype="html" if mail.html else "plain")
