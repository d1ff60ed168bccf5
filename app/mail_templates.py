"""Renders the subject and the parts of an email from its strategy."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from storage.configs.kinds.mail import MAX_BYTES, MailStrategy
from storage.mail.mail import MailContent
from streams.wire.errors import InvalidParameter
from streams.wire.mailbox import is_one_line
from streams.wire.template import render, render_html, variables_of

_SUBJECT_CHARACTERS = 900
_Render = Callable[[str, Mapping[str, Any]], str]


class Rendered(NamedTuple):
    subject: str
    text: str
    html: str


def rendered(strategy: MailStrategy, values: Mapping[str, Any]) -> Rendered:
    """Return the email. Raises `InvalidParameter` if values break the line of the subject, or are too large.

    The size is computed first, because a template may repeat a large value many times.
    """
    parts = ((strategy.subject, render), (strategy.text, render), (strategy.html, render_html))
    if sum(_characters(template, values, by) for template, by in parts) > MAX_BYTES:
        raise _too_large()
    email = Rendered(*(by(template, values) for template, by in parts))
    if sum(len(part.encode()) for part in email) > MAX_BYTES:
        raise _too_large()
    if not is_one_line(email.subject) or len(email.subject) > _SUBJECT_CHARACTERS:
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


def names_in(strategy: MailStrategy) -> set[str]:
    """Return the dotted names of the variables that are shown."""
    return {name for part in (strategy.subject, strategy.text, strategy.html) for name in variables_of(part)}


def _characters(template: str, values: Mapping[str, Any], by: _Render) -> int:
    shown = Counter(variables_of(template))
    return len(by(template, {})) + sum(count * len(by(f"{{{{.{name}}}}}", values)) for name, count in shown.items())


def _too_large() -> InvalidParameter:
    return InvalidParameter(f"custom_variables make the email larger than {MAX_BYTES} bytes")
