"""The built-in texts of emails and of the pages to which they link, and the choice of the reader's language."""

from collections.abc import Mapping
from html import escape
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

from storage.configs.kinds.email import DEFAULT, Template
from streams.wire.codec import loads

Purpose = Literal["login_email", "sign_up_email", "verify", "reset", "notice"]
"""What an email is for: a field of the templates in the config."""
_NOT_ME = "{{.NotMeLink}}"
_LINKS = {"{{.Link}}", _NOT_ME}
_TEXTS: dict[str, dict[str, Any]] = loads(Path(__file__).with_suffix(".json").read_bytes())
"""By language: the subject and the paragraphs of each email, and the texts about its `account`, of `events` and of
`pages`."""
_MAX_TAGS = 10


def language_of(request: web.Request) -> str:
    """Return the header `Accept-Language` of a request."""
    return request.headers.get("Accept-Language", "")


def preferred_language(accepted: str, available: Mapping[str, object]) -> str | None:
    """Return the first language of a header `Accept-Language` that is available, by its tag or its language."""
    by_tag = {tag.lower(): tag for tag in available}
    weighed = []
    for part in accepted.split(",")[:_MAX_TAGS]:
        tag, _, weight = part.partition(";")
        try:
            q = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            q = 0
        weighed.append((-q, tag.strip().lower()))
    for _, tag in sorted(weighed, key=itemgetter(0)):
        for wanted in (tag, tag.partition("-")[0]):
            if wanted in by_tag:
                return by_tag[wanted]
    return None


def built_in(purpose: Purpose, accepted: str, *, has_not_me_link: bool) -> tuple[str, Template]:
    """Return the language and the template of a built-in mail."""
    language = language_for(accepted)
    subject, *paragraphs = _TEXTS[language][purpose]
    if paragraphs[-1] == _NOT_ME and not has_not_me_link:
        paragraphs = paragraphs[:-2]  # The paragraph before it introduces the link.
    html = "".join(map(_paragraph, paragraphs))
    return language, Template(subject=subject, text="\n\n".join(paragraphs) + "\n", html=_HTML % (language, html))


def choose_template(
    purpose: Purpose, accepted: str, translations: Mapping[str, Template], *, has_not_me_link: bool
) -> tuple[str, Template]:
    """Return the best template and its language, which is empty if it is unknown.

    The operator's templates precede the built-in ones: first the reader's language, then the default.
    """
    named = {tag: template for tag, template in translations.items() if tag != DEFAULT}
    if language := preferred_language(accepted, named):
        return language, named[language]
    if DEFAULT in translations:
        return "", translations[DEFAULT]
    return built_in(purpose, accepted, has_not_me_link=has_not_me_link)


def language_for(accepted: str) -> str:
    """Return the language of the built-in texts for a header `Accept-Language`."""
    return preferred_language(accepted, _TEXTS) or "en"


def page_texts(accepted: str) -> dict[str, str]:
    """Return the texts of the pages in the reader's language."""
    texts: dict[str, str] = _TEXTS[language_for(accepted)]["pages"]
    return texts


def account_texts(accepted: str) -> dict[str, str]:
    """Return the sentences about an account, in the reader's language."""
    texts: dict[str, str] = _TEXTS[language_for(accepted)]["account"]
    return texts


def event_text(event: str, accepted: str) -> str:
    """Return what a notice says about an event."""
    text: str = _TEXTS[language_for(accepted)]["events"][event]
    return text


_HTML = (
    '<!doctype html>\n<html lang="%s"><body style="font:16px/1.5 sans-serif;margin:24px;max-width:36em;'
    'overflow-wrap:anywhere">%s'
    "</body></html>\n"
)


def _paragraph(text: str) -> str:
    if text in _LINKS:
        return f'<p><a href="{text}">{text}</a></p>'
    if text == "{{.Code}}":
        return f'<p style="font-size:28px;letter-spacing:4px">{text}</p>'
    return f"<p>{escape(text)}</p>"
