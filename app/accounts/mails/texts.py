"""The built-in texts of emails and of the pages to which they link, and the choice of the reader's language."""

from collections.abc import Container, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from aiohttp import web

from app.accounts.mails.layout import LINK, NOT_ME, REQUESTED, html_of
from storage.configs.kinds.email import DEFAULT, Template
from streams.wire.codec import loads

Purpose = Literal["login_email", "sign_up_email", "verify", "reset", "notice"]
"""What an email is for: a field of the templates in the config."""
_TEXTS: dict[str, dict[str, Any]] = loads(Path(__file__).with_suffix(".json").read_bytes())
"""By language: the subject and the paragraphs of each email, the texts about its `account`, of `events` and of
`pages`, and the one about the URL of a `button`."""
_LABELS: dict[Purpose, dict[str, str]] = {
    "verify": {LINK: "confirm_button", NOT_ME: "not_me_frees_button"},
    "reset": {LINK: "reset", NOT_ME: "not_me_secures_button"},
    "notice": {NOT_ME: "not_me_secures_button"},
}
"""The text of each link of an email, which is that of the page to which it leads."""
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


def built_in(purpose: Purpose, accepted: str, *, variables: Container[str], color: str) -> tuple[str, Template]:
    """Return the language and the template of a built-in mail.

    `variables` are the names of those that have a value, and `color` is the app's.
    """
    language = language_for(accepted)
    texts = _TEXTS[language]
    subject, *paragraphs = texts[purpose]
    if "NotMeLink" not in variables and paragraphs[-1] == NOT_ME:
        paragraphs = paragraphs[:-2]  # The paragraph before it introduces the link.
    if "Requested" not in variables and REQUESTED in paragraphs:
        paragraphs.remove(REQUESTED)
    html = html_of(
        language,
        subject,
        paragraphs,
        labels={link: texts["pages"][label] for link, label in _LABELS.get(purpose, {}).items()},
        color=color,
        fallback=texts["button"],
    )
    return language, Template(subject=subject, text="\n\n".join(paragraphs) + "\n", html=html)


def choose_template(
    purpose: Purpose,
    accepted: str,
    translations: Mapping[str, Template],
    *,
    variables: Container[str],
    color: str,
) -> tuple[str, Template]:
    """Return the best template and its language, which is empty if it is unknown.

    The operator's templates precede the built-in ones: first the reader's language, then the default.
    """
    named = {tag: template for tag, template in translations.items() if tag != DEFAULT}
    if language := preferred_language(accepted, named):
        return language, named[language]
    if DEFAULT in translations:
        return "", translations[DEFAULT]
    return built_in(purpose, accepted, variables=variables, color=color)


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
