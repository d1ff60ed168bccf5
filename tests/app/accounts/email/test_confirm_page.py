"""The page with the button that proves an address, and what counts as a strong proof of it (§3.2, §4.7)."""

import re
from urllib.parse import quote

import pytest

from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    change_address,
    link_in,
    new_address,
    new_owner,
    open_not_me,
    path_of,
    refusal,
    session_of,
)
from tests.app.accounts.people import bind, me, player

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
WELCOME = "https://app.example:8443/welcome?a=1#top"


async def sign_up(box: Mailbox) -> tuple[str, dict[str, str]]:
    """Sign up. Return the link of the email, and the header of the session."""
    address = new_address()
    session = session_of(await box.sign_up(address))
    return link_in(await box.mail(address)), session


async def is_verified(box: Mailbox, session: dict[str, str]) -> bool:
    return bool((await me(box.server, session))["email"]["verified"])


@pytest.mark.parametrize(
    ("redirect", "origins"),
    [
        (None, "'self'"),
        (WELCOME, "'self' https://app.example:8443"),
        ("https://ada:secret@bücher.example/x", "'self' https://xn--bcher-kva.example"),
        ("http://[2001:db8::1]/x", "'self' http:"),
    ],
)
async def test_the_page_of_a_browser_may_send_its_form_to_the_origins_of_its_answers(
    box: Mailbox, redirect: str | None, origins: str
):
    redirects = {} if redirect is None else {"verify_redirect_url": redirect}
    await box.configure(activation=True, color="#c2410c", **redirects)
    link, session = await sign_up(box)
    async with box.server.http.get(link, headers={**BROWSER, "Accept-Language": "fr"}) as response:
        text, policy = await response.text(), response.headers["Content-Security-Policy"]
        assert (response.status, response.content_type) == (200, "text/html")
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"
    assert re.search(r"form-action ([^;]*);", policy)[1] == origins
    assert '<html lang="fr">' in text
    assert "--accent: #c2410c; --on-accent: #fff; --link: #c2410c;" in text
    assert '<form method="post"><button>Confirmer mon adresse</button></form>' in text
    assert "<script" not in text
    assert await is_verified(box, session) is False


@pytest.mark.parametrize("accepted", [("*/*", "text/html"), ("Text/HTML;q=0.9",)])
async def test_a_browser_may_write_its_accept_header_in_any_way(box: Mailbox, accepted: tuple[str, ...]):
    link, session = await sign_up(box)
    async with box.server.http.get(link, headers=[("Accept", value) for value in accepted]) as response:
        assert "<form" in await response.text()
    assert await is_verified(box, session) is False


async def test_the_button_answers_as_the_link_does(box: Mailbox):
    link, session = await sign_up(box)
    for headers, media_type in ((BROWSER, "text/html"), ({}, "application/json")):
        async with box.server.http.post(link, headers=headers) as response:
            assert (response.status, response.content_type) == (200, media_type)
    assert await is_verified(box, session)
    await box.configure(activation=True, verify_redirect_url=WELCOME)
    link, session = await sign_up(box)
    for _ in range(2):
        async with box.server.http.post(link, headers=BROWSER, allow_redirects=False) as response:
            location = "https://app.example:8443/welcome?a=1&verified=true#top"
            assert (response.status, response.headers["Location"]) == (301, location)
    assert await is_verified(box, session)


async def test_the_page_of_this_server_asks_too(box: Mailbox):
    link, session = await sign_up(box)
    link = link.replace("/bp/user/email/verify", "/account/verify")
    async with box.server.http.get(link) as response:
        assert "<form" in await response.text()
    assert await is_verified(box, session) is False
    async with box.server.http.post(link) as response:
        assert (response.status, "is confirmed" in await response.text()) == (200, True)
    assert await is_verified(box, session)


@pytest.mark.parametrize("path", ["/bp/user/email/verify", "/account/verify"])
async def test_without_the_page_a_browser_proves_an_address_weakly(box: Mailbox, path: str):
    await box.configure(activation=True, code_login=True, confirm_page=False)
    address = new_address()
    session = session_of(await box.sign_up(address))
    link = link_in(await box.mail(address)).replace("/bp/user/email/verify", path)
    async with box.server.http.get(link, headers=BROWSER) as response:
        assert (response.status, "is confirmed" in await response.text()) == (200, True)
    assert await is_verified(box, session)
    assert (await box.code_login(address, await box.code(address, nth=2)))[0] == 200
    assert refusal(await box.me(session)) == (400, "account.invalid_session")
    assert refusal(await box.login(address)) == (400, "account.auth_failed")


async def test_a_link_that_is_wrong_shows_no_button(box: Mailbox):
    address, session = await new_owner(box)
    replaced, new = new_address(), new_address()
    for given in (replaced, new):
        assert (await box.post("me/email", {"email": given, "platform": "ios"}, "PUT", **session))[0] == 200
    superseded = link_in(await box.mail(replaced))
    for link in (superseded, superseded + "x", f"{superseded}&email={quote(address)}"):
        async with box.server.http.get(link, headers=BROWSER) as response:
            assert (response.status, "<form" in await response.text()) == (400, False)
        async with box.server.http.post(link) as response:
            assert (response.status, response.content_type) == (400, "application/json")


async def test_a_raw_plus_in_the_address_of_a_link_is_a_plus(box: Mailbox):
    address = f"ada+{new_address()}"
    session = session_of(await box.sign_up(address))
    link = path_of(link_in(await box.mail(address)))
    for wrong in ("ada%2Bx@example.com", "ada-x@example.com"):
        assert refusal(await box.get(f"{link}&email={wrong}")) == (400, "account.code_invalid")
    for right in (address, quote(address), address.replace("+", "%20")):
        async with box.server.http.get(f"{box.server.url}{link}&email={right}", headers=BROWSER) as response:
            assert response.status == 200, right
    async with box.server.http.post(f"{box.server.url}{link}&email={address}") as response:
        assert response.status == 200
    assert await is_verified(box, session)


@pytest.mark.parametrize("weak", [True, False], ids=["weak", "strong"])
async def test_an_address_that_returns_is_as_proven_as_it_was(box: Mailbox, *, weak: bool):
    """Otherwise, whoever signed up with the address of somebody else could make it count as proven by its owner."""
    address, identity = new_address(), player()
    session = session_of(await box.sign_up(address))
    link = link_in(await box.mail(address))
    method = box.server.http.get if weak else box.server.http.post
    async with method(link) as response:
        assert response.status == 200
    assert (await bind(box.server, session, identity))[0] == 200
    uid = (await me(box.server, session))["uid"]
    await box.all_sent()
    await box.later(8 * 86_400)  # "This was not me" only removes newer identities.
    session = session_of(await box.login(address))
    await change_address(box, session, new_address())
    await box.all_sent()
    mails = await box.mails(address)
    await open_not_me(box, next(mail for mail in mails if "has a new email address" in mail["text"]))
    status, reply = await box.code_login(address, await box.code(address, nth=len(mails) + 1))
    assert (status, reply["user"]["uid"]) == (200, uid)
    assert bool(reply["user"]["social_accounts"]) is not weak


async def test_an_address_that_was_changed_back_by_its_link_is_as_proven_as_it_was(box: Mailbox):
    address = new_address()
    own = await box.code_login(address, await box.code(address))
    session, identity = session_of(own), player()
    assert (await bind(box.server, session, identity))[0] == 200
    await box.all_sent()
    await change_address(box, session, new_address())
    await box.all_sent()
    await change_address(box, session, address, nth=len(await box.mails(address)) + 1)
    await box.all_sent()
    status, reply = await box.code_login(address, await box.code(address, nth=len(await box.mails(address)) + 1))
    assert (status, len(reply["user"]["social_accounts"])) == (200, 1)
    assert (await box.me(session))[0] == 200


async def test_whoever_has_an_address_by_its_opened_link_only_loses_it_to_its_earlier_owner(box: Mailbox):
    address, session = await new_owner(box)
    await change_address(box, session, new_address())
    await box.all_sent()
    notices = await box.mails(address)
    attacker = session_of(await box.sign_up(address, NEW_PASSWORD))
    assert await box.get(path_of(link_in(await box.mail(address, nth=len(notices) + 1)))) == (200, {})
    _, after = await open_not_me(box, notices[0])
    assert f"{address} is its address again" in after
    assert refusal(await box.me(attacker)) == (400, "account.invalid_session")
    assert refusal(await box.login(address, NEW_PASSWORD)) == (400, "account.auth_failed")
    assert refusal(await box.login(address, PASSWORD)) == (400, "account.auth_failed")
