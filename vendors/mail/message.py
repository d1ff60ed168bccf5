"""Builds emails: headers, a part with text, and one with HTML."""

from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime


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


def build(mail: Mail, *, host: str, at: datetime) -> EmailMessage:
    """Return the message of an email that `host` sends. Raises `ValueError` for a line break in a header."""
    message = EmailMessage(policy=SMTP)
    message["From"] = mail.sender
    message["To"] = mail.to
    message["Subject"] = mail.subject
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{mail.mail_id}@{host}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    if mail.html:
        message.add_alternative(mail.html, subtype="html")
    if mail.language:  # The calls above move such headers to a part.
        message["Content-Language"] = mail.language
    return message
