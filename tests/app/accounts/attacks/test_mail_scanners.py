"""Somebody signs up with the address of another person, and a program that scans emails opens the link.

Only the owner of the address can read its codes, and press the button behind its links. Whatever the attacker has
set up must not survive the first of these.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    path_of,
    refusal,
    session_of,
)
from tests.app.accounts.people import bind, player
from tests.app.row_locks import one_after_the_other

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
ENDED = (400, "account.invalid_session")
NOBODY = (400, "account.auth_failed")
Session = dict[str, str]


class Victim(NamedTuple):
    address: str
    link: str
    """The link of the email that the attacker's sign-up has caused."""


class Attacker(NamedTuple):
    sessions: list[Session]
    identity: dict[str, Any]


async def attacked(box: Mailbox) -> tuple[Victim, Attacker]:
    """Let an attacker sign up with the address of a victim, link an identity and log in with it."""
    address, identity = new_address(), player()
    sessions = [session_of(await box.sign_up(address))]
    assert (await bind(box.server, sessions[0], identity))[0] == 200
    sessions.append(session_of(await box.post("login", identity)))
    return Victim(address, link_in(await box.mail(address))), Attacker(sessions, identity)


async def press(box: Mailbox, link: str, **headers: str) -> tuple[int, str]:
    async with box.server.http.post(link, headers=headers, allow_redirects=False) as response:
        return response.status, await response.text()


async def is_verified(box: Mailbox, session: Session) -> bool:
    status, reply = await box.get("/bp/user/me/email/verify_result", headers=session)
    assert status == 200, reply
    return bool(reply["verify_result"]["verified"])


async def scan(box: Mailbox, link: str, *, still_asks: bool = True) -> None:
    """Open a link as programs that scan emails do. `still_asks`: the page of a browser has the button."""
    async with box.server.http.head(link) as response:
        assert response.status == 200
    async with box.server.http.get(link, headers=BROWSER) as response:
        assert (response.status, response.content_type) == (200, "text/html")
        assert ("<form" in await response.text()) is still_asks
    assert await box.get(path_of(link)) == (200, {})


async def next_mail(box: Mailbox, address: str) -> int:
    """Return which mail to an address the next one will be."""
    await box.all_sent()
    return len(await box.mails(address)) + 1


async def by_code(box: Mailbox, victim: Victim) -> Session:
    code = await box.code(victim.address, nth=await next_mail(box, victim.address))
    return session_of(await box.code_login(victim.address, code))


async def by_reset(box: Mailbox, victim: Victim) -> Session:
    code = await box.reset_code(victim.address, nth=await next_mail(box, victim.address))
    body = {"random_code": code, "password": NEW_PASSWORD}
    assert await box.post("email/reset_password", body) == (200, None)
    return session_of(await box.login(victim.address, NEW_PASSWORD))


async def by_button(box: Mailbox, victim: Victim) -> Session:
    assert await press(box, victim.link) == (200, "{}")
    return await by_code(box, victim)


Proof = Callable[[Mailbox, Victim], Awaitable[Session]]


async def refused_everywhere(box: Mailbox, victim: Victim, attacker: Attacker) -> None:
    for session in attacker.sessions:
        assert refusal(await box.me(session)) == ENDED
        assert refusal(await box.post("me/deactivate/recover", None, **session)) == ENDED
    assert refusal(await box.login(victim.address, PASSWORD)) == NOBODY
    status, reply = await box.post("login", attacker.identity)
    assert (status, reply["user"]["is_new_user"], reply["user"].get("email")) == (200, True, None)


async def test_neither_head_nor_the_page_of_a_browser_proves_an_address(box: Mailbox):
    victim, attacker = await attacked(box)
    async with box.server.http.head(victim.link) as response:
        assert response.status == 200
    async with box.server.http.get(victim.link, headers=BROWSER) as response:
        assert "<form" in await response.text()
    assert await is_verified(box, attacker.sessions[0]) is False
    assert await box.get(path_of(victim.link)) == (200, {})
    assert await is_verified(box, attacker.sessions[0]) is True


@pytest.mark.parametrize(
    ("prove", "frozen"),  # A freeze revokes the link.
    [(by_code, False), (by_code, True), (by_reset, False), (by_reset, True), (by_button, False)],
)
async def test_whoever_signed_up_before_a_scanner_opened_the_link_has_nothing_left(
    box: Mailbox, prove: Proof, *, frozen: bool
):
    victim, attacker = await attacked(box)
    await scan(box, victim.link)
    attacker.sessions.append(session_of(await box.login(victim.address)))
    if frozen:
        assert await box.post("me/deactivate", None, **attacker.sessions[0]) == (200, None)
    with capture_logs() as logged:
        own = await prove(box, victim)
    [line] = [line for line in logged if line["event"] == "account.first_proof"]
    assert (line["proof"], line["platforms"]) == (prove.__name__.removeprefix("by_"), ["android_games_service"])
    assert victim.address not in str(line)
    await refused_everywhere(box, victim, attacker)
    assert (await box.me(own))[1]["user"]["email"] == {"email_address": victim.address, "verified": True}


@pytest.mark.parametrize("prove", [by_code, by_reset, by_button])
async def test_nothing_is_dropped_after_the_owner_has_proven_the_address(box: Mailbox, prove: Proof):
    victim, signed_up = await attacked(box)
    own = await prove(box, victim)
    identity, uid = player(), (await box.me(own))[1]["user"]["uid"]
    if prove is not by_button:
        assert (await bind(box.server, own, identity))[0] == 200
    else:  # This proof keeps the identity, and the link.
        identity = signed_up.identity
        await scan(box, victim.link, still_asks=False)
        assert await press(box, victim.link) == (200, "{}")
    await by_code(box, victim)
    assert (await box.me(own))[0] == 200
    await by_reset(box, victim)
    status, reply = await box.post("login", identity)
    assert (status, reply["user"]["uid"]) == (200, uid)


async def test_the_button_keeps_the_sign_up_that_its_page_is_about(box: Mailbox):
    victim, signed_up = await attacked(box)
    async with box.server.http.get(victim.link, headers=BROWSER) as response:
        assert "password" not in await response.text()
    for _ in range(2):
        assert await press(box, victim.link) == (200, "{}")
    for session in signed_up.sessions:
        assert (await box.me(session))[0] == 200
    assert (await box.login(victim.address))[0] == 200


async def test_the_page_says_what_the_button_ends(box: Mailbox):
    victim, attacker = await attacked(box)
    await scan(box, victim.link)
    async with box.server.http.get(victim.link, headers=BROWSER) as response:
        text = await response.text()
    assert "The password of the account will be deleted." in text
    assert "will be logged out on all devices" in text
    status, text = await press(box, victim.link, **BROWSER)
    assert (status, "Set a new password in the app" in text) == (200, True)
    assert refusal(await box.me(attacker.sessions[0])) == ENDED
    async with box.server.http.get(victim.link, headers=BROWSER) as response:
        assert (response.status, "<form" in await response.text()) == (200, False)


@pytest.mark.parametrize("bound_by", ["POST", "PUT"], ids=["bound", "changed"])
async def test_an_account_that_adds_the_address_of_somebody_else_is_emptied_too(box: Mailbox, bound_by: str):
    """Also if its own address was proven before: the new one may belong to another person."""
    await box.configure(activation=True)
    identity, victim_address = player(), new_address()
    session = session_of(await box.post("login", identity))
    if bound_by == "PUT":
        await box.configure(activation=True, code_login=True)
        own = new_address()
        body = {"email": own, "platform": "ios", "verify_code": await box.code(own)}
        assert await box.post("me/email", body, **session) == (200, None)
    body = {"email": victim_address, "platform": "ios"}
    assert await box.post("me/email", body, bound_by, **session) == (200, None)
    victim = Victim(victim_address, link_in(await box.mail(victim_address)))
    await scan(box, victim.link)
    assert (await box.me(session))[1]["user"]["email"] == {"email_address": victim_address, "verified": True}
    await box.configure(activation=True, code_login=True)
    own_session = await by_code(box, victim)
    await refused_everywhere(box, victim, Attacker([session], identity))
    assert (await box.me(own_session))[0] == 200


@pytest.mark.parametrize("first", ["code", "button"])
async def test_two_proofs_at_once_drop_once_and_keep_who_proves(box: Mailbox, first: str):
    victim, attacker = await attacked(box)
    uid = (await box.me(attacker.sessions[0]))[1]["user"]["uid"]
    await scan(box, victim.link)
    login = box.code_login(victim.address, await box.code(victim.address, nth=2))
    pressed = press(box, victim.link)
    calls = [login, pressed] if first == "code" else [pressed, login]
    with capture_logs() as logged:
        answers = await one_after_the_other(box.server, uid, *calls)
    assert [line["proof"] for line in logged if line["event"] == "account.first_proof"] == [first]
    if first == "code":
        assert (await box.me(session_of(answers[0])))[0] == 200
        assert answers[1][0] == 200
    else:  # The first proof revokes the codes that were sent before.
        assert answers[0] == (200, "{}")
        assert refusal(answers[1]) == (400, "account.code_invalid")
        assert (await box.me(await by_code(box, victim)))[0] == 200
    await refused_everywhere(box, victim, attacker)
