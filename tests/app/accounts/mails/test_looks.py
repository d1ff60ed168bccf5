"""The built-in emails: a part with text, and one in HTML in the colours of the app."""

import re
from collections.abc import AsyncIterator
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from storage.accounts.password_resets import ResetRequest, SendReset
from storage.jobs.jobs import enqueue
from streams.wire.page_style import DARK, LIGHT
from tests.app.accounts.email.mailbox import Mailbox, new_address, session_of

TITLE = '<script>alert(1)</script> "Ada\'s" & {{.Code}} {{.Link}}'
COLOR = "#c2410c"
MIN_CONTRAST = 4.5
CLIPPED_BYTES = 102 * 1024
"""The size from which Gmail does not show the rest of an email."""
_URL = re.compile(r"https?://\S+")
_BUTTON = re.compile(r'bgcolor="(#\w{6})".*?<a [^>]*?[;"]color:(#\w+);')


class Tags(HTMLParser):
    """The tags of an HTML document, with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    @property
    def names(self) -> set[str]:
        return {tag for tag, _ in self.found}

    @property
    def links(self) -> list[str]:
        return [given["href"] or "" for tag, given in self.found if tag == "a"]


@pytest.fixture
async def named(box: Mailbox) -> AsyncIterator[Mailbox]:
    """The mailbox, in an app with a colour and with a name that is no harmless text."""
    await box.configure("apps", title=TITLE)
    await box.configure(code_login=True, sign_up_verification=False, activation=True, color=COLOR)
    yield box
    await box.configure("apps", title="Talk")


async def mails_of(box: Mailbox, **headers: str) -> dict[str, dict[str, Any]]:
    """Return an email of each purpose."""
    address, new = new_address(), new_address()
    await box.post("send_email_verify_code", {"email": new, "platform": "ios", "type": "login_email"}, **headers)
    found = {"login_email": await box.mail(new)}
    signed_up = {"email_password": {"email": address, "password": "correct horse battery"}}
    session = session_of(await box.post("signup", signed_up, **headers))
    found["verify"] = await box.mail(address)
    await box.post("email/forgot_password", {"email": address, "platform": "ios"}, **headers)
    found["reset"] = await box.mail(address, nth=2)
    await box.post("me/email", {"email": new, "platform": "ios"}, "PUT", **session, **headers)
    found["notice"] = await box.mail(address, nth=3)
    return found


async def test_each_email_has_the_same_links_in_text_and_in_html(named: Mailbox):
    links = {"login_email": 0, "verify": 2, "reset": 2, "notice": 1}
    for purpose, mail in (await mails_of(named)).items():
        assert mail["headers"]["Content-Type"].startswith("multipart/alternative"), purpose
        found = Tags(mail["html"])
        urls = _URL.findall(mail["text"])
        assert len(urls) == links[purpose]
        assert list(dict.fromkeys(found.links)) == urls
        for url in urls[:1]:  # The button's URL can be copied from the text below it.
            assert f">{url}<" in unescape(mail["html"])
        assert len(mail["html"].encode()) < CLIPPED_BYTES
        assert not found.names & {"img", "link", "script", "iframe", "form", "input", "base", "svg"}
        assert not re.search(r"url\(|@import|src=", mail["html"])


async def test_each_email_is_in_the_colour_of_the_app_and_shows_its_name_as_text(named: Mailbox):
    for purpose, mail in (await mails_of(named)).items():
        assert TITLE in mail["subject"] + mail["text"], purpose
        shown = re.sub(r"<style>.*?</style>|<[^>]+>", "", mail["html"], flags=re.DOTALL)
        assert TITLE in unescape(shown)
        assert "<script>" not in mail["html"]
        assert f'bgcolor="{COLOR}"' in mail["html"]
        links = [given["style"] for tag, given in Tags(mail["html"]).found if given.get("class") == "link"]
        assert all(style == f"color:{COLOR}" for style in links)
        assert ("html", {"lang": "en"}) in Tags(mail["html"]).found


async def test_the_code_of_an_email_is_shown_once_and_large(named: Mailbox):
    mail = (await mails_of(named))["login_email"]
    code = mail["subject"].split()[0]
    body = mail["html"].partition("<body")[2]
    assert body.count(code) == 1
    assert re.search(rf'font:700 32px[^"]*user-select:all">{code}<', body)
    assert f"\n{code}\n" in mail["text"]


async def test_each_email_says_when_and_from_where_it_was_caused(named: Mailbox):
    mails = await mails_of(named, User_Agent="Mozilla/5.0 (Macintosh; Intel Mac OS X 14_1)")
    at = r"at \d{4}-\d\d-\d\d \d\d:\d\d UTC"
    said = {
        "login_email": rf"This email was requested from iOS, in the network 127\.0\.0\.1, {at}\.",
        "verify": rf"This email was requested from macOS, in the network 127\.0\.0\.1, {at}\.",
        "reset": rf"This email was requested from iOS, in the network 127\.0\.0\.1, {at}\.",
        "notice": rf"This happened {at}, from macOS, in the network 127\.0\.0\.1\.",
    }
    for purpose, mail in mails.items():
        assert re.search(said[purpose], mail["text"])
        assert re.search(f"(>| ){said[purpose]}<", mail["html"])


async def test_the_html_is_in_the_language_of_the_text(named: Mailbox):
    mails = await mails_of(named, Accept_Language="fr")
    assert "Confirmer mon adresse</a>" in mails["verify"]["html"]
    assert "Choisissez un nouveau mot de passe</a>" in mails["reset"]["html"]
    for mail in mails.values():
        assert ("html", {"lang": "fr"}) in Tags(mail["html"]).found


def luminance(color: str) -> float:
    full = color if len(color) == 7 else "#" + "".join(2 * digit for digit in color[1:])
    channels = [int(full[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("color", ["#ffffff", "#000000", "#ffd400", "#808080"])
async def test_the_button_and_the_links_can_be_read_in_each_colour(box: Mailbox, color: str):
    await box.configure(code_login=True, activation=True, color=color)
    address = new_address()
    await box.sign_up(address)
    html = (await box.mail(address))["html"]
    links = (
        re.search(r"\.link { color: (#\w+) !important", html),
        re.search(r'class="link"[^>]*"color:(#\w+)"', html),
    )
    for card, link in zip((DARK["card"], LIGHT["card"]), links, strict=True):
        assert link
        assert contrast(card, link[1]) >= MIN_CONTRAST
    found = _BUTTON.search(html.partition("<h1")[2])
    assert found
    assert found[1] == color
    assert contrast(found[1], found[2]) >= MIN_CONTRAST


async def test_a_reset_that_an_earlier_version_has_requested_is_sent_without_its_origin(box: Mailbox):
    address, services = new_address(), box.server.services
    await box.sign_up(address)
    await box.mail(address)
    request = ResetRequest(address=address, language="en", custom_variables={})
    expires_s = services.clock.now("default").timestamp() + 60
    async with services.database.transaction() as conn:
        await enqueue(conn, SendReset.seal("default", request, keyring=services.keyring, expires_s=expires_s))
    mail = await box.mail(address, nth=2)
    assert "requested from" not in mail["text"]
    assert "\n\n\n" not in mail["text"]
    assert not re.search(r"<p [^>]*></p>", mail["html"])
