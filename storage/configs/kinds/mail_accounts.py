"""Kind `mail_accounts`: a mail server that sends the emails of other configs, and the login at it."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.vendor_accounts import CallLimits
from streams.wire.mailbox import mailbox_of
from streams.wire.model import Matches

INBOX = "{inbox}"
"""Stands for the host and the port of the local inbox, which only development servers have."""


def _is_sender(sender: str) -> str:
    try:
        mailbox_of(sender)
    except ValueError:
        raise ValueError(
            'must be one address such as Example <hello@example.com>; a name with ",", ":", ";" or "@" must be in '
            "quotation marks"
        ) from None
    return sender


Sender = Annotated[str, Field(max_length=320), AfterValidator(_is_sender)]
"""An address, with or without a name before it. A name with `,`, `:`, `;` or `@` is in quotation marks."""


_Host = Annotated[
    str,
    Field(max_length=253),
    Matches(r"^([A-Za-z0-9.:_-]+|\{inbox\})$", "must be a host name or an IP address"),
]


class MailAccount(CallLimits):
    host: _Host
    """The mail server. In development, `{inbox}` stands for the local inbox and its port."""
    port: int = Field(default=587, ge=1, le=65_535)
    """The port for submission."""
    tls: Literal["none", "starttls", "implicit"] = "starttls"
    """How the connection is encrypted. With `starttls`, nothing is sent to a server that does not support it."""
    username: str = Field(default="", max_length=320)
    """The name of the login. Empty: no login."""
    password: SecretStr | None = None
    """The password of the login."""
    from_: Sender | None = Field(default=None, alias="from")
    """The sender of emails whose config names none."""
    smtputf8: bool = False
    """Whether emails are sent to addresses with other characters than ASCII before the "@". The mail server must
    support SMTPUTF8 (RFC 6531). Users can have such addresses only if an account of their app allows it."""
    per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    """Maximum number of emails per minute. Further emails go to the next account, or wait."""

    @model_validator(mode="after")
    def _has_password(self) -> Self:
        if self.username and self.password is None:
            raise ValueError("password is required with username")
        return self


MAIL_ACCOUNTS = ConfigKind("mail_accounts", "Mail account", MailAccount, addresses=("host", "port", "tls"))
