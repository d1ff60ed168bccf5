"""The last identity with which a user can log in cannot be removed (§4.5, §4.7)."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest

from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    session_of,
)
from tests.app.accounts.people import SOCIAL, ask, bind, new_user, player
from tests.app.accounts.platforms import proof
from tests.waiting import until

GHOST = (400, "account.sp_link_may_cause_ghost")
REMOVED = (200, None)


async def with_player(box: Mailbox, session: dict[str, str]) -> str:
    """Bind a player of a games service to the user of a session. Return the path that unbinds it."""
    body = player()
    assert (await bind(box.server, session, body))[0] == 200
    return f"{SOCIAL}/android_games_service/{body['android_games_service']['player_id']}"


async def unbind(box: Mailbox, session: dict[str, str], path: str) -> tuple[int, Any]:
    """Send a request to unbind an identity. Return the status, and the type of the error, if any."""
    status, reply = await ask(box.server, "DELETE", path, headers=session)
    return status, None if status == 200 else reply["error"]["error_type"]


async def unbind_email(box: Mailbox, session: dict[str, str]) -> tuple[int, Any]:
    return await unbind(box, session, "/bp/user/me/email")


async def refuse_changes(box: Mailbox, mail: dict[str, Any]) -> None:
    """Follow the link of a notice with which its reader refuses the change of the account."""
    token = parse_qs(urlsplit(link_in(mail)).query)["token"][0]
    async with box.server.http.post(f"{box.server.url}/account/not-me", data={"token": token}) as response:
        assert response.status == 200


async def test_a_name_without_a_password_is_no_login_method(box: Mailbox):
    named, address = {"name": f"n{uuid4().hex}", "password": PASSWORD}, new_address()
    session = session_of(await box.post("signup", {"name_password": named}))
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert (await box.post("me/email", body, **session))[0] == 200
    change = {"origin_password": PASSWORD, "password": NEW_PASSWORD}
    assert (await box.post("me/password", change, "PUT", **session))[0] == 200
    await refuse_changes(box, await box.mail(address, nth=2))
    session = session_of(await box.code_login(address, await box.code(address, nth=3)))
    assert await unbind_email(box, session) == GHOST

    reset = {"random_code": await box.reset_code(address, nth=4), "password": PASSWORD}
    assert (await box.post("email/reset_password", reset))[0] == 200
    session = session_of(await box.login(address))
    assert await unbind_email(box, session) == REMOVED
    assert (await box.post("login", {"name_password": named}))[0] == 200


@pytest.mark.parametrize(
    ("config", "result"),
    [
        ({"code_login": True}, REMOVED),
        ({"code_login": False}, GHOST),
        ({"code_login": True, "enabled": False}, GHOST),
        ({"code_login": True, "mail_accounts": []}, GHOST),
    ],
)
async def test_an_address_without_a_password_is_a_login_method_if_the_app_sends_codes(box: Mailbox, config, result):
    address = new_address()
    session = session_of(await box.code_login(address, await box.code(address)))
    path = await with_player(box, session)
    await box.configure(**config)
    assert await unbind(box, session, path) == result


async def test_an_unproven_address_is_a_login_method_only_with_its_password(box: Mailbox):
    address = new_address()
    session = session_of(await box.sign_up(address))
    assert await unbind(box, session, await with_player(box, session)) == REMOVED
    path = await with_player(box, session)
    await box.configure(enabled=False)
    assert await unbind(box, session, path) == GHOST
    await box.configure(code_login=True)

    body = {"email": new_address(), "platform": "ios"}
    assert (await box.post("me/email", body, "PUT", **session))[0] == 200
    await refuse_changes(box, await box.mail(address, nth=2))
    player_id = path.rpartition("/")[2]
    session = session_of(await box.post("login", player(player_id)))
    assert await unbind(box, session, path) == GHOST


async def test_a_third_party_is_a_login_method_while_the_app_offers_it(box: Mailbox):
    _, session = await new_user(box.server)
    path = await with_player(box, session)
    assert (await bind(box.server, session, await proof(box.server, "microblog")))[0] == 200
    offered = {"base_url": "{sandbox}/weibo", "audiences": ["sandbox-app"]}
    for more, result in (({"enabled": False}, GHOST), ({}, REMOVED)):
        value = {**offered, **more}
        await box.server.services.configs.put(
            "default", "sign_in", "microblog", value, author="tests", origin=COMMAND
        )
        assert await unbind(box, session, path) == result


async def test_a_phone_number_is_a_login_method_while_the_app_sends_messages(box: Mailbox):
    number = "+4915112345678"
    assert (await box.post("send_phone_verify_code", {"phone_number": number}))[0] == 200

    async def messages() -> list[dict[str, Any]]:
        return (await box.get("/dev/sms", params={"to": number}))[1]["messages"]

    await until(messages)
    assert (await box.get(f"/dev/sms?to={number}"))[1]["messages"] == await messages()
    code = re.search(r"\d{6}", (await messages())[0]["text"])[0]
    session = session_of(await box.post("login", {"phone": {"phone_number": number, "verify_code": code}}))
    path, configs = await with_player(box, session), box.server.services.configs
    await configs.delete(ConfigKey("default", "sms", "default"), author="tests", origin=COMMAND)
    assert await unbind(box, session, path) == GHOST
    value = {"url": "{sandbox}/sms/default", "secret": "sandbox"}
    await configs.put("default", "sms", "default", value, author="tests", origin=COMMAND)
    assert await unbind(box, session, path) == REMOVED
