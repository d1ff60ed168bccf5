"""Kind `email`: the email addresses of users, and the emails by which they are proven and changed (§4.7)."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from storage.configs.kinds.base import DAY_S, ConfigKind, Ref
from storage.configs.kinds.mail_accounts import Sender
from streams.wire.lines import is_line
from streams.wire.model import HttpUrl, Matches, Model

DEFAULT = "default"
"""The language of a template for readers of all other languages."""
_Language = Annotated[
    str,
    Matches(r"^(default|[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*)$", "must be a language such as de or pt-BR, or default"),
]
_PageUrl = Annotated[HttpUrl, Field(max_length=2048)]


def _one_line(subject: str) -> str:
    if not is_line(subject):
        raise ValueError("must be one line")
    return subject


_UrlHost = Annotated[
    str,
    Field(max_length=260),
    Matches(r"^[a-z0-9.-]+(:[0-9]{1,5})?$", "must be a host name in lower case, with or without a port"),
]
UrlHosts = Annotated[list[_UrlHost], Field(max_length=100)]
Subject = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_one_line)]


class Template(Model):
    """An email. `{{.Name}}` stands for the variable `Name`, `{{.CustomVariables.key}}` for one in the request."""

    subject: Subject
    """The subject, on one line."""
    text: str = Field(min_length=1, max_length=64 * 1024)
    """The part in plain text."""
    html: str = Field(default="", max_length=256 * 1024)
    """The part in HTML, in which the values of variables are escaped. Without it, the email has only its text."""


def _by_language(value: Any) -> Any:
    """Treat a template without languages as the template of the default language."""
    if isinstance(value, dict) and "subject" in value:
        return {DEFAULT: value}
    return value


Translations = Annotated[dict[_Language, Template], BeforeValidator(_by_language), Field(max_length=100)]


class Templates(Model):
    """The templates that replace the built-in ones, by language, such as `de` or `pt-BR`, and `default`."""

    login_email: Translations = Field(default_factory=dict)
    """The code of a login: `{{.Code}}`. `{{.Requested}}` says when and from where it was requested."""
    sign_up_email: Translations = Field(default_factory=dict)
    """The code of a sign-up: `{{.Code}}`. `{{.Requested}}` says when and from where it was requested."""
    verify: Translations = Field(default_factory=dict)
    """The link that verifies an address, `{{.Link}}`, a link to refuse this, `{{.NotMeLink}}`, and information for
    the reader, `{{.Account}}`: when the account was created, its name, and from where the email was requested."""
    reset: Translations = Field(default_factory=dict)
    """The link for a new password, `{{.Link}}`, its code, `{{.Code}}`, a link that ends all sessions,
    `{{.NotMeLink}}`, and when and from where it was requested, `{{.Requested}}`."""
    notice: Translations = Field(default_factory=dict)
    """A notice of a change of the account, `{{.Event}}`, when and from where it was made, `{{.Requested}}`, and a
    link that ends all sessions, `{{.NotMeLink}}`."""


class Email(Model):
    enabled: bool = True
    """Whether users may have email addresses, and log in with them."""
    sign_up_verification: bool = False
    """Whether a sign-up needs a code that was sent to the address before."""
    code_login: bool = False
    """Whether users may log in with codes that are sent to their addresses."""
    activation: bool = False
    """Whether a user who has signed up without a code gets a link that verifies the address."""
    confirm_page: bool = True
    """Whether a browser that opens the link which verifies an address gets a page with a button. Programs that scan
    emails open links too, but do not press buttons. If false, opening the link verifies the address, and the first
    code or password reset after that removes all other ways to log in."""
    verify_redirect_url: _PageUrl | None = None
    """URL to which the link that verifies an address redirects, with `verified=true` in its query. Default: a page
    of this server."""
    reset_url: _PageUrl | None = None
    """The page of the app that asks for a new password. It gets `random_code` in its query. Default: a page of this
    server."""
    code_s: int = Field(default=600, ge=1, le=DAY_S)
    """Seconds for which a code can be used."""
    link_s: int = Field(default=DAY_S, ge=1, le=30 * DAY_S)
    """Seconds for which a link that verifies an address can be used."""
    reset_s: int = Field(default=3600, ge=1, le=DAY_S)
    """Seconds for which a link for a new password can be used."""
    mail_accounts: Annotated[list[str], Ref("mail_accounts"), Field(max_length=10)] = Field(default_factory=list)
    """The accounts that send the emails. They are tried in this order."""
    from_: Sender | None = Field(default=None, alias="from")
    """The sender of the emails. Default: the sender of the account."""
    url_hosts: UrlHosts = Field(default_factory=list)
    """Hosts to which the variables of requests may lead, besides those of `verify_redirect_url` and `reset_url`. A
    value that a browser would open at another host, or of which mail programs would make a link to one, is
    refused."""
    color: Annotated[str, Matches(r"^#[0-9a-fA-F]{6}$", "must be a colour such as #0172ad")] = "#0172ad"
    """The colour of the buttons on this server's pages, and in the emails that it writes."""
    templates: Templates = Templates()
    """Emails that replace the built-in ones."""


EMAIL = ConfigKind("email", "Email addresses of users", Email, singleton=True)
