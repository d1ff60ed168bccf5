"""Renders the subject and the parts of an email from its template."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from app.mail_urls import leads_elsewhere
from storage.configs.kinds.email import Template
from storage.configs.kinds.mail import MAX_BYTES, MailStrategy
from storage.mail.mail import MailContent
from streams.wire.errors import InvalidParameter
from streams.wire.lines import is_line
from streams.wire.template import render, render_html, variables_of

_SUBJECT_CHARACTERS = 900
_Render = Callable[[str, Mapping[str, Any]], str]


class Rendered(NamedTuple):
    subject: str
    text: str
    html: str


def allowed_variables(
    given: Mapping[str, Any], names: Collection[str], *, url_hosts: Collection[str]
) -> dict[str, Any]:
    """Return the variables in `names`. Raises `InvalidParameter` if one leads to another host than `url_hosts`.

    Clients choose the values, so an email must not lead its reader to a page that the app does not know.
    """
    variables = {name: value for name, value in given.items() if name in names}
    for name, value in variables.items():
        if any(leads_elsewhere(text, url_hosts) for text in _texts(value)):
            raise InvalidParameter(
                f"custom_variables.{name} may only lead to hosts that the config allows (url_hosts)"
            )
    return variables


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings in a value, including those in objects, which templates can address."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def rendered(
    template: MailStrategy | Template, values: Mapping[str, Any], *, max_bytes: int = MAX_BYTES
) -> Rendered:
    """Return the email. Raises `InvalidParameter` if values break the line of the subject, or are too large.

    The size is computed first, because a template may repeat a large value many times.
    """
    parts = ((template.subject, render), (template.text, render), (template.html, render_html))
    if sum(_characters(part, values, by) for part, by in parts) > max_bytes:
        raise _too_large(max_bytes)
    email = Rendered(*(by(part, values) for part, by in parts))
    if sum(len(part.encode()) for part in email) > max_bytes:
        raise _too_large(max_bytes)
    if not is_line(email.subject) or len(email.subject) > _SUBJECT_CHARACTERS:
        raise InvalidParameter("custom_variables must not put line breaks or long texts into the subject")
    return email


def content_of(
    strategy: MailStrategy, email: Rendered, *, to: str, unsubscribe: Sequence[str] = (), one_click: bool = False
) -> MailContent:
    """Return what `SendMail` sends to an address."""
    return MailContent(
        to=to,
        subject=email.subject,
        text=email.text,
        html=email.html,
        sender=strategy.from_,
        reply_to=strategy.reply_to,
        unsubscribe=list(unsubscribe),
        one_click=one_click,
        accounts=strategy.mail_accounts,
    )


def names_in(template: MailStrategy | Template) -> set[str]:
    """Return the dotted names of the variables that are shown."""
    return {name for part in (template.subject, template.text, template.html) for name in variables_of(part)}


def _characters(template: str, values: Mapping[str, Any], by: _Render) -> int:
    shown = Counter(variables_of(template))
    return len(by(template, {})) + sum(count * len(by(f"{{{{.{name}}}}}", values)) for name, count in shown.items())


def _too_large(max_bytes: int) -> InvalidParameter:
    return InvalidParameter(f"custom_variables make the email larger than {max_bytes} bytes")
