"""Bind, change and loss of an email address, and new passwords by mail (§3.2, §4.7)."""

import asyncio
import re
from datetime import UTC, datetime

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
from tests.app.accounts.error_causes import AUTH
from tests.app.accounts.people import bind, new_user, player


async def email_of(box, session) -> dict | None:
    status, reply = await box.me(session)
    assert status == 200, reply
    return reply["user"].get("email")


async def verified_user(box) -> tuple[str, dict]:
    """Sign up with an address, which is verified by its link."""
    address = new_address()
    session = session_of(await box.sign_up(address))
    assert (await box.get(path_of(link_in(await box.mail(address)))))[0] == 200
    return address, session


async def test_the_mail_that_confirms_an_address_says_which_account_and_from_where_it_was_requested(box: Mailbox):
    await box.configure(code_login=False, activation=True)
    try:
        address, agent = new_address(), "Mozilla/5.0 (Windows NT 10.0) evil.example"
        body = {"email_password": {"email": address, "password": PASSWORD}}
        reply = await box.post("signup", body, User_Agent=agent)
        signed_up = (await box.mail(address))["text"]
        created = datetime.fromtimestamp(reply[1]["user"]["create_time"], UTC).strftime("%Y-%m-%d %H:%M")
        assert f"confirms the account that was signed up with this address at {created} UTC" in signed_up
        assert "requested from Windows, in the network 127.0.0.1" in signed_up
        assert "evil" not in signed_up

        name, other = f"mallory-{address[:8]}", new_address()
        session = session_of(await box.post("signup", {"name_password": {"name": name, "password": PASSWORD}}))
        given = {"email": other, "platform": "ios"}
        assert await box.post("me/email", given, **session, **{"Accept-Language": "de"}) == (200, None)
        bound = (await box.mail(other))["text"]
        assert "einem Konto hinzu, das es schon vorher gab, seit" in bound
        assert f"„{name}“" in bound
        assert "von iOS aus angefordert, im Netz 127.0.0.1" in bound
        assert (await box.post("me/email/send_verify_code", {"platform": "android"}, **session))[0] == 200
        again = (await box.mail(other, nth=2))["text"]
        assert "an account that existed before" in again
        assert "requested from Android" in again
    finally:
        await box.configure(code_login=True, activation=True)


async def test_an_address_is_bound_by_a_code(box: Mailbox):
    address = new_address()
    uid, session = await new_user(box.server)
    assert await email_of(box, session) is None
    body = {"email": address, "platform": "ios"}
    assert refusal(await box.post("me/email", body, **session)) == (400, "account.code_empty")
    body["verify_code"] = await box.code(address)
    assert await box.post("me/email", body, **session) == (200, None)
    assert await email_of(box, session) == {"email_address": address, "verified": True}
    _status, reply = await box.code_login(address, await box.code(address, nth=2))
    assert reply["user"]["uid"] == uid


async def test_an_address_that_is_bound_without_a_code_waits_for_its_link(box: Mailbox):
    await box.configure(code_login=False, activation=True)
    address = new_address()
    uid, session = await new_user(box.server)
    body = {"email": address, "platform": "ios"}
    assert await box.post("me/email", body, **session) == (200, None)
    assert await email_of(box, session) == {"email_address": address, "verified": False}
    assert (await box.post("detect", {"email": address}))[1]["email_data"]["exists"] is False
    assert await box.post("email/forgot_password", body) == (200, None)
    assert await box.post("me/email/send_verify_code", {"platform": "ios"}, **session) == (200, None)
    first, second = link_in(await box.mail(address)), link_in(await box.mail(address, nth=2))
    assert "verify" in first
    assert "verify" in second
    assert await box.get(path_of(second)) == (200, {})
    assert await box.get(path_of(first)) == (200, {})
    assert await email_of(box, session) == {"email_address": address, "verified": True}
    body = {"random_code": await box.reset_code(address, nth=3), "password": NEW_PASSWORD}
    assert await box.post("email/reset_password", body) == (200, None)
    assert (await box.login(address, NEW_PASSWORD))[1]["user"]["uid"] == uid


async def test_a_bound_address_that_is_taken_has_a_bp_auth_of_its_own(box: Mailbox):
    address, _ = await verified_user(box)
    _, session = await new_user(box.server)
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address, nth=2)}
    status, reply = await box.post("me/email", body, **session)
    assert refusal((status, reply)) == (400, "account.email_already_exists")
    status, entered = await box.post("login", {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]})
    assert (status, entered["user"]["email"]["email_address"]) == (200, address)
    _mine, session = await verified_user(box)
    other = new_address()
    body = {"email": other, "platform": "ios", "verify_code": await box.code(other)}
    status, reply = await box.post("me/email", body, **session)
    assert refusal((status, reply)) == (400, "account.user_already_bound_email")
    status, entered = await box.post("login", {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]})
    assert entered["user"]["email"] == {"email_address": other, "verified": True}
    assert entered["user"]["is_new_user"] is True


async def test_the_bp_auth_of_a_bind_needs_logins_by_code(box: Mailbox):
    address, _ = await verified_user(box)
    _, session = await new_user(box.server)
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address, nth=2)}
    _, reply = await box.post("me/email", body, **session)
    token = {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]}
    await box.configure(code_login=False)
    assert refusal(await box.post("login", token)) == (417, "config_invalid")
    await box.configure(code_login=True)
    assert (await box.post("login", token))[0] == 200


async def test_the_bp_auth_of_a_bind_does_not_enter_an_account_that_somebody_else_made(box: Mailbox):
    address = new_address()
    attacker = session_of(await box.sign_up(address))
    _, session = await new_user(box.server)
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address, nth=2)}
    status, reply = await box.post("me/email", body, **session)
    assert refusal((status, reply)) == (400, "account.email_already_exists")
    assert refusal(await box.me(attacker)) == (400, "account.invalid_session")
    assert refusal(await box.login(address)) == (400, "account.auth_failed")


async def test_a_changed_address_replaces_the_old_one_after_its_link(box: Mailbox):
    old, session = await verified_user(box)
    new = new_address()
    assert await box.post("me/email", {"email": new, "platform": "ios"}, "PUT", **session) == (200, None)
    notice = await box.mail(old, nth=2)
    assert "another email address" in notice["text"]
    assert (await email_of(box, session))["email_address"] == old
    assert (await box.login(old))[0] == 200
    assert refusal(await box.login(new)) == (400, "account.auth_failed")
    assert (await box.get("/bp/user/me/email/verify_result", headers=session))[1]["verify_result"][
        "verified"
    ] is False
    link = path_of(link_in(await box.mail(new)))
    for _ in range(2):
        assert await box.get(link) == (200, {})
    assert await email_of(box, session) == {"email_address": new, "verified": True}
    assert (await box.login(new))[0] == 200
    assert refusal(await box.login(old)) == (400, "account.auth_failed")


async def test_a_link_for_an_address_that_was_replaced_before_its_proof_changes_nothing(box: Mailbox):
    old, session = await verified_user(box)
    replaced, new = new_address(), new_address()
    for address in (replaced, new):
        assert await box.post("me/email", {"email": address, "platform": "ios"}, "PUT", **session) == (200, None)
    superseded = path_of(link_in(await box.mail(replaced)))
    for current in (old, new):
        assert refusal(await box.get(superseded)) == (400, "account.code_invalid")
        assert await email_of(box, session) == {"email_address": current, "verified": True}
        assert await box.get(path_of(link_in(await box.mail(new)))) == (200, {})


async def test_an_address_is_unbound_unless_it_is_the_last_login_method(box: Mailbox):
    address, session = await verified_user(box)
    assert refusal(await box.post("me/email", None, "DELETE", **session)) == (
        400,
        "account.sp_link_may_cause_ghost",
    )
    other = player()
    assert (await bind(box.server, session, other))[0] == 200
    with_other = session_of(await box.post("login", other))
    assert await box.post("me/email", None, "DELETE", **with_other) == (200, None)
    assert "removed" in (await box.mail(address, nth=3))["text"]
    assert refusal(await box.me(session)) == (400, "account.invalid_session")
    assert await email_of(box, with_other) is None
    assert refusal(await box.post("me/email", None, "DELETE", **with_other)) == (400, "account.email_not_found")


async def test_of_twenty_resets_with_one_code_exactly_one_wins(box: Mailbox):
    address, session = await verified_user(box)
    code = await box.reset_code(address, nth=2)
    body = [{"random_code": code, "password": f"{NEW_PASSWORD} {n}"} for n in range(20)]
    results = await asyncio.gather(*(box.post("email/reset_password", fields) for fields in body))
    assert sorted(status for status, _ in results) == [200] + [400] * 19
    [winner] = [n for n, (status, _) in enumerate(results) if status == 200]
    logins = [await box.login(address, body[n]["password"]) for n in (winner, (winner + 1) % 20)]
    assert [status for status, _ in logins] == [200, 400]
    assert refusal(await box.me(session)) == (400, "account.invalid_session")
    assert "new password" in (await box.mail(address, nth=3))["text"]


async def test_links_are_built_from_the_configured_url_only(box: Mailbox):
    address = new_address()
    poison = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    headers = {**poison, "X-Forwarded-Proto": "https"}
    signed_up = {"email_password": {"email": address, "password": PASSWORD}}
    url = f"{box.server.url}/bp/user"
    async with box.server.http.post(f"{url}/signup", json=signed_up, headers=headers) as response:
        assert response.status == 200
    body = {"email": address, "platform": "website"}
    async with box.server.http.post(f"{url}/email/forgot_password", json=body, headers=headers) as response:
        assert response.status == 200
    for nth in (1, 2):
        mail = await box.mail(address, nth=nth)
        links = re.findall(r"https?://[^\s<>\"']+", mail["text"] + mail["html"])
        assert links
        assert all(link.startswith(f"{box.server.url}/") for link in links)
        assert "evil" not in str(mail)


async def test_the_link_of_an_app_leads_to_its_pages(box: Mailbox):
    await box.configure(
        activation=True,
        verify_redirect_url="https://app.example/welcome?a=1#top",
        reset_url="https://app.example/reset",
    )
    address = new_address()
    await box.sign_up(address)
    link = link_in(await box.mail(address))
    async with box.server.http.get(f"{link}&next=https://evil.example", allow_redirects=False) as response:
        assert response.status == 301
        assert response.headers["Location"] == "https://app.example/welcome?a=1&verified=true#top"
    await box.post("email/forgot_password", {"email": address, "platform": "website"})
    assert link_in(await box.mail(address, nth=2)).startswith("https://app.example/reset?random_code=")


async def test_the_page_of_this_server_sets_a_new_password(box: Mailbox):
    address, session = await verified_user(box)
    link = f"{box.server.url}/account/reset?random_code={await box.reset_code(address, nth=2)}"
    async with box.server.http.get(link, headers={"Accept-Language": "de"}) as response:
        text = await response.text()
        assert (response.status, response.content_type) == (200, "text/html")
    assert '<html lang="de">' in text
    assert "mindestens 8 Zeichen" in text
    assert f'readonly value="{address}"' in text
    assert "<script" not in text
    assert 'aria-invalid="true"' not in text
    fields = {"random_code": link.partition("random_code=")[2], "password": "short"}
    async with box.server.http.post(f"{box.server.url}/account/reset", data=fields) as response:
        assert response.status == 400
        text = await response.text()
    assert 'aria-invalid="true" aria-describedby="error"' in text
    assert '<p class="error" id="error">This password is too short or too common.' in text
    fields["password"] = NEW_PASSWORD
    for status in (200, 400):
        async with box.server.http.post(f"{box.server.url}/account/reset", data=fields) as response:
            assert response.status == status
    assert (await box.login(address, NEW_PASSWORD))[0] == 200
    assert refusal(await box.me(session)) == (400, "account.invalid_session")


async def test_the_page_for_a_new_password_names_the_minimum_length_of_the_app(box: Mailbox):
    address, _ = await verified_user(box)
    link = f"{box.server.url}/account/reset?random_code={await box.reset_code(address, nth=2)}"
    await box.configure("auth", **AUTH, password={"min_characters": 12})
    async with box.server.http.get(link) as response:
        text = await response.text()
    await box.configure("auth", **AUTH)
    assert "at least 12 characters" in text
    assert 'minlength="12"' in text


async def test_the_page_for_a_new_password_needs_email_addresses(box: Mailbox):
    address, _ = await verified_user(box)
    fields = {"random_code": await box.reset_code(address, nth=2), "password": NEW_PASSWORD}
    url = f"{box.server.url}/account/reset"
    await box.configure(enabled=False)
    browser = {"headers": {"Accept": "text/html"}}
    async with box.server.http.get(url, params={"random_code": fields["random_code"]}, **browser) as response:
        assert (response.status, "does not work" in await response.text()) == (422, True)
    async with box.server.http.post(url, data=fields, **browser) as response:
        assert (response.status, response.content_type) == (422, "text/html")
    await box.configure(code_login=True)
    assert (await box.login(address))[0] == 200


async def test_a_browser_gets_a_page_for_the_link_that_verifies(box: Mailbox):
    address = new_address()
    await box.sign_up(address)
    link = link_in(await box.mail(address))
    for url, status in (
        (link, 200),
        (link.replace("/bp/user/email/verify", "/account/verify"), 200),
        (link + "x", 400),
    ):
        async with box.server.http.get(url, headers={"Accept": "text/html"}) as response:
            assert (response.status, response.content_type) == (status, "text/html")


async def test_a_changed_password_is_reported_to_the_address(box: Mailbox):
    address, session = await verified_user(box)
    body = {"origin_password": PASSWORD, "password": NEW_PASSWORD}
    assert await box.post("me/password", body, "PUT", **session) == (200, None)
    assert "was changed" in (await box.mail(address, nth=2))["text"]
