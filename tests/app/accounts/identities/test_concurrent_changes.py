"""Concurrent changes of what belongs to the same users: none of them fails because of another's locks."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from random import sample
from typing import Any
from uuid import uuid4

from tests.app.accounts.email.mailbox import PASSWORD, Mailbox, new_address, session_of
from tests.app.accounts.people import SOCIAL, ask, bind, enter, login, me, new_user, player
from tests.app.row_locks import until_waiting

ROUNDS = 4
Session = dict[str, str]
Call = Callable[[], Awaitable[tuple[int, Any]]]
Outcomes = Counter[tuple[int, str]]


async def at_once(calls: list[Call]) -> Outcomes:
    """Make calls at the same time, in random order, and return how often each outcome occurred.

    A deadlock would be `database`, or `backend unavailable` where a mail is to be stored.
    """
    answers = await asyncio.gather(*(call() for call in sample(calls, len(calls))))
    outcomes = Counter((status, reply["error"]["error_type"] if reply and "error" in reply else "")
                       for status, reply in answers)  # fmt: skip
    assert not [outcome for outcome in outcomes if outcome[0] >= 500 or outcome[1] == "backend unavailable"], (
        outcomes
    )
    return outcomes


def bind_email(box: Mailbox, session: Session, address: str, code: str) -> Call:
    body = {"email": address, "platform": "ios", "verify_code": code}
    return partial(box.post, "me/email", body, **session)


async def changes(box: Mailbox) -> list[Call]:
    """Calls that bind, unbind, change and use the identities of a new user, and freeze and recover the account."""
    name, address, body = f"u{uuid4().hex[:12]}", new_address(), player()
    session = session_of(await box.post("signup", {"name_password": {"name": name, "password": PASSWORD}}))
    path = f"{SOCIAL}/android_games_service/{body['android_games_service']['player_id']}"
    return [
        bind_email(box, session, address, await box.code(address)),
        partial(box.post, "me/email", {"email": new_address(), "platform": "ios"}, "PUT", **session),
        partial(box.post, "me/email", None, "DELETE", **session),
        partial(bind, box.server, session, body),
        partial(ask, box.server, "DELETE", path, headers=session),
        partial(login, box.server, body),
        partial(box.post, "me/deactivate", None, **session),
        partial(box.post, "me/deactivate/recover", None, **session),
    ]


async def test_changes_of_one_user_do_not_block_each_other(box: Mailbox):
    for _ in range(ROUNDS):
        calls = await changes(box)
        await at_once(calls * 5)
        await at_once(calls[:5] * 6)  # Without a freeze, most of them take effect.


async def test_of_binds_and_logins_with_one_code_one_wins(box: Mailbox):
    users = [(await new_user(box.server))[1] for _ in range(10)]
    for _ in range(ROUNDS):
        address = new_address()
        code = await box.code(address)
        logins: list[Call] = [partial(box.code_login, address, code)] * 10
        outcomes = await at_once([*logins, *(bind_email(box, user, address, code) for user in users)])
        # A user who won in an earlier round has an address, so the code proves the new one for its `bp_auth`.
        assert outcomes[200, ""] + outcomes[400, "account.user_already_bound_email"] == 1, outcomes


async def test_users_who_prove_the_addresses_of_each_other_do_not_block_each_other(box: Mailbox):
    for _ in range(ROUNDS):
        addresses = [new_address(), new_address()]
        sessions = [session_of(await box.sign_up(address)) for address in addresses]
        codes = [await box.code(address, nth=2) for address in addresses]
        calls = [bind_email(box, sessions[n], addresses[1 - n], codes[1 - n]) for n in range(2)]
        await at_once(calls * 5)


async def test_a_login_and_a_new_password_of_one_user_do_not_block_each_other(box: Mailbox):
    address, body = new_address(), player()
    session = session_of(await box.sign_up(address))
    assert (await bind(box.server, session, body))[0] == 200
    for _ in range(9):
        await enter(box.server, body)
    change = {"origin_password": PASSWORD, "password": PASSWORD}
    calls = (box.login(address), box.post("me/password", change, "PUT", **session))
    running = []
    async with box.server.services.database.transaction() as conn:
        await conn.fetch("select from sessions where uid = $1 for update", (await me(box.server, session))["uid"])
        for number, call in enumerate(calls, start=1):  # The login ends the oldest of eleven sessions.
            running.append(asyncio.ensure_future(call))  # noqa: TID251 - awaited below
            await until_waiting(box.server.services.database, conn, number)
    assert [status for status, _ in await asyncio.gather(*running)] == [200, 200]
