"""Kind `mail`: a strategy, by which an app sends emails of one purpose to its users (§4.15)."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from storage.configs.kinds.base import ConfigKind, Ref
from storage.configs.kinds.email import Subject, UrlHosts
from storage.configs.kinds.mail_accounts import Sender
from streams.wire.mailbox import mailbox_of
from streams.wire.model import Matches, Model

MAX_BYTES = 256 * 1024
"""Maximum total size of the subject and the parts of an email."""

_Variable = Annotated[str, Matches(r"^[A-Za-z0-9_]{1,64}$", "must be 1 to 64 letters, digits and underscores")]


def _is_ascii(sender: str) -> str:
    if not mailbox_of(sender).address.isascii():
        raise ValueError(
            "must have only ASCII characters before the @, because most mail servers refuse other senders"
        )
    return sender


_UnsubscribeUrl = Annotated[
    str,
    Field(max_length=900),
    Matches(r"^(https://|mailto:)[!-;=?-~]+$", "must be a URL that begins with https:// or mailto:"),
]


class MailStrategy(Model):
    """An email of one purpose.

    In its templates, `{{.CustomVariables.key}}` stands for a variable of the request, `{{.TrackingPixelURL}}` for
    the URL of the tracking pixel, `{{.UnsubscribeURL}}` for the URL of the page for unsubscribing, `{{.Email}}` for
    the recipient, and `{{.App}}` for the title of the app.
    """

    subject: Subject
    """The subject, on one line."""
    html: str = Field(default="", max_length=MAX_BYTES)
    """The part in HTML, in which the values of variables are escaped. `html`, `text` or both are required."""
    text: str = Field(default="", max_length=MAX_BYTES)
    """The part in plain text."""
    from_: Sender | None = Field(default=None, alias="from")
    """The sender. Default: the sender of the account."""
    reply_to: Annotated[Sender, AfterValidator(_is_ascii)] | None = None
    """The address for replies. Default: the sender."""
    mail_accounts: Annotated[list[str], Ref("mail_accounts"), Field(min_length=1, max_length=10)]
    """The accounts that send the emails. They are tried in this order."""
    enable_api_email: bool = False
    """Whether a request may name the recipient. Otherwise emails go to the address of the user."""
    variables: list[_Variable] = Field(default_factory=list, max_length=64)
    """The variables that requests may set. Others are ignored."""
    url_hosts: UrlHosts = Field(default_factory=list)
    """The hosts to which variables may lead. A value that a browser would open at another host, or of which mail
    programs would make a link to one, is refused."""
    list_unsubscribe: _UnsubscribeUrl | None = None
    """A URL of the app for the header `List-Unsubscribe`. With `https:`, it replaces the one of this server, which
    unsubscribes by one click (RFC 8058)."""
    list_unsubscribe_post: bool = False
    """Whether a POST request to `list_unsubscribe`, an `https:` URL, unsubscribes at once (RFC 8058). Emails then
    have the header `List-Unsubscribe-Post`."""
    track: bool = True
    """Whether opens are reported. Otherwise `{{.TrackingPixelURL}}` is empty."""

    @model_validator(mode="after")
    def _has_url_for_post(self) -> Self:
        if self.list_unsubscribe_post and not (self.list_unsubscribe or "").startswith("https://"):
            raise ValueError("list_unsubscribe_post needs list_unsubscribe to be an https: URL")
        return self

    @model_validator(mode="after")
    def _has_a_part(self) -> Self:
        if not (self.html or self.text):
            raise ValueError("html or text is required")
        if sum(len(part.encode()) for part in (self.subject, self.html, self.text)) > MAX_BYTES:
            raise ValueError(f"subject, html and text must have at most {MAX_BYTES} bytes together")
        return self


MAIL = ConfigKind("mail", "Mail strategy", MailStrategy)
