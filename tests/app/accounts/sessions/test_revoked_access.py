"""Which sessions, codes and `bp_auth` tokens a change of an account revokes, and which it keeps (§3.1, §4).

Each change is made to an account of its own. Whatever it revokes is refused afterwards, and whatever it keeps is
used. The account without a change shows that all of it works.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    new_address,
    open_not_me,
    path_of,
    refusal,
    session_of,
)
from tests.app.accounts.error_causes import AUTH
from tests.app.accounts.people import bind, new_user, player
from tests.waiting import until

FREEZE_S = 60
"""Shorter than the lifetimes of codes and of `bp_auth` tokens, which must not expire in a freeze."""
SHORT_CODE = re.compile(r"^\d{6}$", re.MULTILINE)
RESET = re.compile(r"(?<=random_code=)\S+")
VERIFY = re.compile(r"http\S+verify_code=\S+")

GAMES_SESSION = "a session made with the identity of a game"
OTHER_GAMES_SESSION = "another session made with that identity"
EMAIL_SESSION = "a session made with the address"
SESSIONS = (GAMES_SESSION, OTHER_GAMES_SESSION, EMAIL_SESSION)
GAMES_BP_AUTH = "a bp_auth of the identity of a game"
EMAIL_BP_AUTH = "a bp_auth of the address"
BP_AUTHS = (GAMES_BP_AUTH, EMAIL_BP_AUTH)
LOGIN_CODE = "a code for a login with the address"
RESET_CODE = "a code for a new password"
LINK = "a link that verifies another address"
CODES = (LOGIN_CODE, RESET_CODE, LINK)
ACCEPTED = (200, "")
REFUSED = {
    **dict.fromkeys(SESSIONS, (400, "account.invalid_session")),
    **dict.fromkeys(BP_AUTHS, (400, "account.auth_failed")),
    **dict.fromkeys(CODES, (400, "account.code_invalid")),
}


@dataclass
class Account:
    """A user with an address, a password and the identity of a game."""

    box: Mailbox
    address: str
    games: dict[str, Any]
    waiting: str
    """An address that becomes that of the account when it is proven."""
    tokens: dict[str, str]
    """The session tokens, codes, links and `bp_auth` tokens."""

    def session(self, name: str = GAMES_SESSION) -> dict[str, str]:
        return {"X-Service-Session-Token": self.tokens[name]}

    async def call(self, path: str, body: Any = None, method: str = "POST", *, by: str = GAMES_SESSION) -> None:
        """Call an endpoint that has no reply, in a session of the user."""
        assert await self.box.post(path, body, method, **self.session(by)) == (200, None)

    async def use(self, name: str) -> tuple[int, str]:
        """Use what a client or a mail has, and return the outcome."""
        if name in SESSIONS:
            result = await self.box.me(self.session(name))
        elif name in BP_AUTHS:
            result = await self.box.post("login", {"bp_auth_token": self.tokens[name]})
        elif name == LOGIN_CODE:
            result = await self.box.code_login(self.address, self.tokens[name])
        elif name == RESET_CODE:
            result = await self.box.post("email/reset_password", new_password(self.tokens[name]))
        else:
            result = await self.box.get(path_of(self.tokens[name]))
        return ACCEPTED if result[0] == 200 else refusal(result)


def new_password(code: str) -> dict[str, str]:
    return {"random_code": code, "password": NEW_PASSWORD}


async def request_code(box: Mailbox, address: str) -> None:
    body = {"email": address, "platform": "ios", "type": "login_email"}
    assert await box.post("send_email_verify_code", body) == (200, None)


async def find_text(box: Mailbox, to: str, pattern: re.Pattern[str], *, count: int = 1) -> str:
    """Wait for `count` mails with a text that matches `pattern`. Return that of the newest mail."""
    found: list[str] = []

    async def arrived() -> bool:
        texts = [pattern.search(mail["text"]) for mail in await box.mails(to)]
        found[:] = [text[0] for text in texts if text]
        return len(found) >= count

    await until(arrived, within_s=60, every_s=0.05)
    return found[0]


async def new_account(box: Mailbox, *, verified: bool = True) -> Account:
    address, waiting, games = new_address(), new_address(), player()
    account = Account(box, address, games, waiting, {})
    tokens = account.tokens
    tokens[EMAIL_SESSION] = token_of(await box.sign_up(address))
    assert (await bind(box.server, account.session(EMAIL_SESSION), games))[0] == 200
    for name in (GAMES_SESSION, OTHER_GAMES_SESSION):
        status, reply = await box.post("login", games)
        tokens[name] = token_of((status, reply))
        tokens[GAMES_BP_AUTH] = reply["bp_auth"]["bp_auth_token"]
    if verified:
        await request_code(box, address)
        body = {"email": address, "platform": "ios", "verify_code": await find_text(box, address, SHORT_CODE)}
        result = await box.post("me/email", body, **account.session())
        assert refusal(result) == (400, "account.user_already_bound_email")
        tokens[EMAIL_BP_AUTH] = result[1]["bp_auth"]["bp_auth_token"]
    await account.call("me/email", {"email": waiting, "platform": "ios"}, "PUT")
    assert await box.post("email/forgot_password", {"email": address, "platform": "ios"}) == (200, None)
    await request_code(box, address)
    tokens[LINK] = await find_text(box, waiting, VERIFY)
    tokens[RESET_CODE] = await find_text(box, address, RESET)
    tokens[LOGIN_CODE] = await find_text(box, address, SHORT_CODE, count=2 if verified else 1)
    return account


def token_of(result: tuple[int, Any]) -> str:
    return session_of(result)["X-Service-Session-Token"]


async def nothing(_account: Account) -> None:
    pass


async def log_out(account: Account) -> None:
    await account.call("logout")


async def end_another_session(account: Account) -> None:
    _, reply = await account.box.get("/bp/user/me/sessions", headers=account.session(EMAIL_SESSION))
    newest = reply["sessions"][0]
    assert (newest["login_platform"], newest["current"]) == ("android_games_service", False)
    await account.call(f"me/sessions/{newest['session_id']}", None, "DELETE", by=EMAIL_SESSION)


async def change_password(account: Account) -> None:
    await account.call("me/password", {"origin_password": PASSWORD, "password": NEW_PASSWORD}, "PUT")


async def reset_password(account: Account) -> None:
    assert await account.use(RESET_CODE) == ACCEPTED


async def log_in_with_the_code(account: Account) -> None:
    session = session_of(await account.box.code_login(account.address, account.tokens[LOGIN_CODE]))
    assert (await account.box.me(session))[0] == 200


async def prove_the_address_as_somebody_else(account: Account) -> None:
    _, session = await new_user(account.box.server)
    body = {"email": account.address, "platform": "ios", "verify_code": account.tokens[LOGIN_CODE]}
    assert refusal(await account.box.post("me/email", body, **session)) == (400, "account.email_already_exists")
    assert (await account.box.me(session))[0] == 200


async def open_the_link(account: Account) -> None:
    assert (await account.box.get(path_of(await find_text(account.box, account.address, VERIFY))))[0] == 200


async def press_the_button(account: Account) -> None:
    async with account.box.server.http.post(await find_text(account.box, account.address, VERIFY)) as response:
        assert response.status == 200


async def open_the_link_and_press_the_button(account: Account) -> None:
    await open_the_link(account)
    await press_the_button(account)


async def say_not_me(account: Account, to: str, pattern: re.Pattern[str]) -> None:
    """Press the button of the link "this was not me" in the newest mail to an address that matches `pattern`."""
    await find_text(account.box, to, pattern)
    mail = next(mail for mail in await account.box.mails(to) if pattern.search(mail["text"]))
    _, after = await open_not_me(account.box, mail)
    assert "There is nothing to do" not in after


async def refuse_a_reset(account: Account) -> None:
    await say_not_me(account, account.address, RESET)


async def refuse_the_sign_up(account: Account) -> None:
    await say_not_me(account, account.address, VERIFY)


async def refuse_a_change_of_the_address(account: Account) -> None:
    await change_the_address(account)
    await say_not_me(account, account.address, re.compile("no longer in use"))


async def refuse_a_pending_address(account: Account) -> None:
    await say_not_me(account, account.waiting, VERIFY)


async def unbind_the_game(account: Account) -> None:
    [(platform, info)] = account.games.items()
    await account.call(f"me/socialaccount/{platform}/{info['player_id']}", None, "DELETE", by=EMAIL_SESSION)


async def unbind_the_address(account: Account) -> None:
    await account.call("me/email", None, "DELETE")


async def change_the_address(account: Account) -> None:
    assert await account.use(LINK) == ACCEPTED


async def deactivate(account: Account) -> None:
    await account.call("me/deactivate")


async def freeze(account: Account) -> None:
    """Freeze the account, and get a code and a `bp_auth` after that: the freeze has revoked the earlier ones."""
    await deactivate(account)
    await request_code(account.box, account.address)
    _, session = await new_user(account.box.server)
    result = await bind(account.box.server, session, account.games)
    assert refusal(result) == (400, "account.sp_linked_another")
    account.tokens[GAMES_BP_AUTH] = result[1]["bp_auth"]["bp_auth_token"]
    account.tokens[LOGIN_CODE] = await find_text(account.box, account.address, SHORT_CODE, count=3)


async def confirm_the_deactivation(account: Account) -> None:
    await freeze(account)
    await account.call("me/deactivate/confirm")


async def let_the_freeze_end(account: Account) -> None:
    await freeze(account)
    await account.box.later(FREEZE_S + 1)

    async def ended() -> bool:
        return await account.use(GAMES_SESSION) != ACCEPTED

    await until(ended)


@dataclass(frozen=True)
class Row:
    change: Callable[[Account], Awaitable[None]]
    revokes: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    """In the order of their use. A new password revokes the rest, so its code is the last one."""
    verified: bool = True
    """Whether the address was proven before."""


ROWS = [
    Row(nothing, keeps=(*SESSIONS, *BP_AUTHS, LOGIN_CODE, RESET_CODE)),
    Row(nothing, keeps=(LINK,)),
    Row(nothing, keeps=(*SESSIONS, GAMES_BP_AUTH, LINK), verified=False),
    Row(
        log_out,
        revokes=(GAMES_SESSION, GAMES_BP_AUTH),
        keeps=(OTHER_GAMES_SESSION, EMAIL_SESSION, EMAIL_BP_AUTH, LOGIN_CODE, RESET_CODE),
    ),
    Row(
        end_another_session,
        revokes=(OTHER_GAMES_SESSION, GAMES_BP_AUTH),
        keeps=(GAMES_SESSION, EMAIL_SESSION, EMAIL_BP_AUTH, LOGIN_CODE, RESET_CODE),
    ),
    Row(
        change_password,
        revokes=(OTHER_GAMES_SESSION, EMAIL_SESSION, *BP_AUTHS, *CODES),
        keeps=(GAMES_SESSION,),
    ),
    Row(reset_password, revokes=(*SESSIONS, *BP_AUTHS, *CODES)),
    Row(log_in_with_the_code, revokes=(*SESSIONS, GAMES_BP_AUTH, *CODES), verified=False),
    Row(prove_the_address_as_somebody_else, revokes=(*SESSIONS, GAMES_BP_AUTH, *CODES), verified=False),
    Row(reset_password, revokes=(*SESSIONS, GAMES_BP_AUTH, *CODES), verified=False),
    Row(open_the_link, keeps=(*SESSIONS, GAMES_BP_AUTH, RESET_CODE), verified=False),
    Row(press_the_button, keeps=(*SESSIONS, GAMES_BP_AUTH, LOGIN_CODE, RESET_CODE), verified=False),
    Row(open_the_link_and_press_the_button, revokes=(*SESSIONS, GAMES_BP_AUTH, *CODES), verified=False),
    Row(refuse_a_reset, revokes=(*SESSIONS, *BP_AUTHS, *CODES)),
    Row(refuse_a_reset, revokes=(*SESSIONS, GAMES_BP_AUTH, *CODES), verified=False),
    Row(refuse_the_sign_up, revokes=(*SESSIONS, *BP_AUTHS, *CODES)),
    Row(refuse_the_sign_up, revokes=(*SESSIONS, GAMES_BP_AUTH, *CODES), verified=False),
    Row(refuse_a_change_of_the_address, revokes=(*SESSIONS, *BP_AUTHS, RESET_CODE, LINK)),
    Row(refuse_a_pending_address, revokes=(*SESSIONS, *BP_AUTHS, *CODES)),
    Row(
        unbind_the_game,
        revokes=(GAMES_SESSION, OTHER_GAMES_SESSION, GAMES_BP_AUTH),
        keeps=(EMAIL_SESSION, EMAIL_BP_AUTH, LOGIN_CODE, RESET_CODE),
    ),
    Row(
        unbind_the_address,
        revokes=(EMAIL_SESSION, EMAIL_BP_AUTH, RESET_CODE, LINK),
        keeps=(GAMES_SESSION, OTHER_GAMES_SESSION, GAMES_BP_AUTH),
    ),
    Row(change_the_address, revokes=(EMAIL_BP_AUTH, RESET_CODE), keeps=(*SESSIONS, GAMES_BP_AUTH)),
    Row(deactivate, revokes=(*BP_AUTHS, *CODES), keeps=SESSIONS),
    Row(confirm_the_deactivation, revokes=(*SESSIONS, *BP_AUTHS, *CODES)),
    Row(let_the_freeze_end, revokes=(*SESSIONS, *BP_AUTHS, *CODES)),
]


@pytest.fixture(scope="module")
async def box(testbed: Mailbox) -> Mailbox:
    await testbed.configure(code_login=True, activation=True)
    await testbed.configure("auth", **AUTH, deactivation={"freeze_s": FREEZE_S})
    return testbed


@pytest.mark.parametrize(
    "row", ROWS, ids=[f"{row.change.__name__}{'' if row.verified else '_unverified'}" for row in ROWS]
)
async def test_a_change_revokes_what_it_must_and_nothing_else(box: Mailbox, row: Row):
    account = await new_account(box, verified=row.verified)
    for name in SESSIONS:
        assert await account.use(name) == ACCEPTED, name  # And is now in the cache.
    try:
        await row.change(account)
        assert {name: await account.use(name) for name in row.revokes} == {
            name: REFUSED[name] for name in row.revokes
        }
        assert {name: await account.use(name) for name in row.keeps} == dict.fromkeys(row.keeps, ACCEPTED)
    finally:
        await box.server.services.clock.move("default", offset_s=0)


@pytest.mark.parametrize("change", [change_password, reset_password])
async def test_a_new_password_cancels_a_change_of_the_address(box: Mailbox, change):
    account = await new_account(box)
    session, path = account.session(), "me/email/send_verify_code"
    await change(account)
    if change is reset_password:
        session = session_of(await box.login(account.address, NEW_PASSWORD))
    assert refusal(await box.post(path, {"platform": "ios"}, **session)) == (400, "invalid_parameter")
