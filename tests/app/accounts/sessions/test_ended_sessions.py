"""A session that ends while a call with it is under way changes nothing any more.

A client may send its body long after its session was checked, and a platform may take long to answer.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest

from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    refusal,
    session_of,
)
from tests.app.accounts.people import SOCIAL, ask, bind, me, new_user, player, token
from tests.app.accounts.platforms import proof
from tests.app.row_locks import one_after_the_other
from tests.waiting import until

ENDED = (400, "account.invalid_session")
Session = dict[str, str]
Answer = tuple[int, Any]
Change = tuple[Session, Coroutine[Any, Any, Answer]]
"""A session, and a call with it."""


async def new_name(box: Mailbox) -> Session:
    named = {"name": f"n{uuid4().hex}", "password": PASSWORD}
    return session_of(await box.post("signup", {"name_password": named}))


async def with_address(box: Mailbox, session: Session) -> Session:
    address = new_address()
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert await box.post("me/email", body, **session) == (200, None)
    return session


async def frozen(box: Mailbox) -> Session:
    _, session = await new_user(box.server)
    assert await box.post("me/deactivate", None, **session) == (200, None)
    return session


async def linking(box: Mailbox) -> Change:
    _, session = await new_user(box.server)
    return session, bind(box.server, session, player())


async def unlinking(box: Mailbox) -> Change:
    session, body = await new_name(box), player()
    assert (await bind(box.server, session, body))[0] == 200
    path = f"{SOCIAL}/android_games_service/{body['android_games_service']['player_id']}"
    return session, ask(box.server, "DELETE", path, headers=session)


async def renewing_a_token(box: Mailbox) -> Change:
    _, session = await new_user(box.server)
    body = await proof(box.server, "social_network_a")
    _, reply = await bind(box.server, session, body)

    async def has_profile() -> bool:
        return "social_profile" in (await me(box.server, session))["social_accounts"][0]

    await until(has_profile)
    path = f"{SOCIAL}/social_network_a/{reply['social_account']['id']}"
    return session, ask(box.server, "PUT", path, json=body, headers=session)


async def binding_an_address(box: Mailbox) -> Change:
    (_, session), address = await new_user(box.server), new_address()
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    return session, box.post("me/email", body, **session)


async def binding_an_unproven_address(box: Mailbox) -> Change:
    _, session = await new_user(box.server)
    await box.configure(code_login=False, activation=True)
    return session, box.post("me/email", {"email": new_address(), "platform": "ios"}, **session)


async def changing_the_address(box: Mailbox) -> Change:
    _, session = await new_user(box.server)
    await with_address(box, session)
    return session, box.post("me/email", {"email": new_address(), "platform": "ios"}, "PUT", **session)


async def sending_the_link_again(box: Mailbox) -> Change:
    session = session_of(await box.sign_up(new_address()))
    return session, box.post("me/email/send_verify_code", {"platform": "ios"}, **session)


async def unbinding_the_address(box: Mailbox) -> Change:
    session = await with_address(box, await new_name(box))
    return session, box.post("me/email", None, "DELETE", **session)


async def changing_the_password(box: Mailbox) -> Change:
    session, body = await new_name(box), {"origin_password": PASSWORD, "password": NEW_PASSWORD}
    return session, box.post("me/password", body, "PUT", **session)


async def freezing_the_account(box: Mailbox) -> Change:
    _, session = await new_user(box.server)
    return session, box.post("me/deactivate", None, **session)


async def confirming_the_deactivation(box: Mailbox) -> Change:
    session = await frozen(box)
    return session, box.post("me/deactivate/confirm", None, **session)


async def recovering_the_account(box: Mailbox) -> Change:
    session = await frozen(box)
    return session, box.post("me/deactivate/recover", None, **session)


async def ending_another_session(box: Mailbox) -> Change:
    body = {"device": {"id": uuid4().hex}}
    _first, second = [session_of(await box.post("login", body)) for _ in range(2)]
    _, reply = await box.get("/bp/user/me/sessions", headers=second)
    [other] = [listed["session_id"] for listed in reply["sessions"] if not listed["current"]]
    return second, box.post(f"me/sessions/{other}", None, "DELETE", **second)


async def logging_out_again(box: Mailbox) -> Change:
    _, session = await new_user(box.server)
    return session, box.post("logout", None, **session)


CHANGES: list[Callable[[Mailbox], Awaitable[Change]]] = [
    linking,
    unlinking,
    renewing_a_token,
    binding_an_address,
    binding_an_unproven_address,
    changing_the_address,
    sending_the_link_again,
    unbinding_the_address,
    changing_the_password,
    freezing_the_account,
    confirming_the_deactivation,
    recovering_the_account,
    ending_another_session,
    logging_out_again,
]


@pytest.mark.parametrize("prepare", CHANGES, ids=lambda change: change.__name__)
async def test_a_change_that_is_overtaken_by_a_logout_has_no_effect(box: Mailbox, prepare):
    session, change = await prepare(box)
    uid = (await me(box.server, session))["uid"]
    await box.all_sent()
    paths = [f"/bp/server/user/{uid}", f"/bp/server/user/{uid}/sessions"]
    before = [await ask(box.server, "GET", path, headers=token()) for path in paths]
    logout = box.post("logout", None, **session)
    _, refused = await one_after_the_other(box.server, uid, logout, change)
    assert refusal(refused) == ENDED
    user, sessions = [await ask(box.server, "GET", path, headers=token()) for path in paths]
    assert user == before[0]
    if "sessions" in before[1][1]:  # Those of a frozen account are not listed.
        assert len(sessions[1]["sessions"]) == len(before[1][1]["sessions"]) - 1


async def by_a_code(box: Mailbox, address: str) -> Coroutine[Any, Any, Answer]:
    return box.code_login(address, await box.code(address, nth=2))


async def by_a_new_password(box: Mailbox, address: str) -> Coroutine[Any, Any, Answer]:
    body = {"random_code": await box.reset_code(address, nth=2), "password": NEW_PASSWORD}
    return box.post("email/reset_password", body)


async def by_not_me(box: Mailbox, address: str) -> Coroutine[Any, Any, Answer]:
    url = link_in(await box.mail(address), nth=1)
    token_of_link = parse_qs(urlsplit(url).query)["token"][0]
    return ask(box.server, "POST", "/account/not-me", data={"token": token_of_link})


@pytest.mark.parametrize("prove", [by_a_code, by_a_new_password, by_not_me], ids=lambda change: change.__name__)
async def test_whoever_signed_up_with_the_address_of_another_cannot_link_an_identity_late(box: Mailbox, prove):
    address, mine = new_address(), player()
    attacker = session_of(await box.sign_up(address))
    uid = (await me(box.server, attacker))["uid"]
    proving = await prove(box, address)
    await box.all_sent()
    (status, _), refused = await one_after_the_other(box.server, uid, proving, bind(box.server, attacker, mine))
    assert (status, refusal(refused)) == (200, ENDED)
    status, reply = await box.post("login", mine)
    assert (status, reply["user"]["uid"] == uid) == (200, False)
