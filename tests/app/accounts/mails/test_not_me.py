"""The link "this was not me" of emails about an account: what its page says, and what it does."""

import re
from urllib.parse import parse_qs, urlsplit

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
from tests.app.accounts.people import ask, bind, error_type, me, new_user, player, token

ENDED = (400, "account.invalid_session")
NOBODY = (400, "account.auth_failed")


async def test_who_did_not_sign_up_frees_the_address(box: Mailbox):
    address = new_address()
    attacker = session_of(await box.sign_up(address))
    mail = await box.mail(address)
    assert (await box.get(path_of(link_in(mail))))[0] == 200
    link = path_of(link_in(mail, nth=1))
    assert link.startswith("/account/not-me?token=")
    async with box.server.http.get(box.server.url + link) as response:
        assert f"<li>{address} will be removed from the account.</li>" in await response.text()
    assert (await box.me(attacker))[0] == 200
    token = parse_qs(urlsplit(link).query)["token"][0]
    forged = token[:-8] + ("A" * 8)
    async with box.server.http.post(f"{box.server.url}/account/not-me", data={"token": forged}) as response:
        assert response.status == 400
    assert (await box.me(attacker))[0] == 200
    _, after = await open_not_me(box, mail)
    assert "Your address was removed." in after
    assert refusal(await box.me(attacker)) == ENDED
    assert (await box.post("detect", {"email": address}))[1]["email_data"]["exists"] is False


async def test_an_account_that_loses_its_last_login_method_is_frozen(box: Mailbox):
    address = new_address()
    result = await box.sign_up(address)
    uid = result[1]["user"]["uid"]
    before, after = await open_not_me(box, await box.mail(address))
    assert re.findall("<li>(.*?)</li>", before)[-1] == (
        "The account has no other sign-in method, so it will be deactivated."
    )
    assert "Your address was removed." in after
    path, other = f"/bp/server/user/{uid}", player()
    refused = await ask(box.server, "POST", f"{path}/socialaccount", json=other, headers=token())
    assert refusal(refused) == (400, "account.deactivate_pending_user")
    recovered = await ask(box.server, "POST", f"{path}/deactivate/recover", headers=token())
    assert recovered == (200, None)
    assert (await ask(box.server, "POST", f"{path}/socialaccount", json=other, headers=token()))[0] == 200
    assert (await box.post("login", other))[1]["user"]["uid"] == uid


async def test_an_account_that_keeps_a_login_method_is_not_frozen(box: Mailbox):
    address, other = new_address(), player()
    assert (await bind(box.server, session_of(await box.sign_up(address)), other))[0] == 200
    before, _ = await open_not_me(box, await box.mail(address))
    assert "deactivated" not in before
    assert (await box.post("login", other))[0] == 200


async def test_a_changed_address_is_restored_and_whoever_changed_it_has_nothing_left(box: Mailbox):
    address, session = await new_owner(box)
    uid, others = (await me(box.server, session))["uid"], new_address()
    await change_address(box, session, others)
    body = {"random_code": await box.reset_code(others, nth=2), "password": NEW_PASSWORD}
    assert await box.post("email/reset_password", body) == (200, None)
    session = session_of(await box.login(others, NEW_PASSWORD))
    last = new_address()
    await change_address(box, session, last)
    news = await box.mail(address, nth=3)
    assert "has a new email address" in news["text"]

    before, after = await open_not_me(box, news, **{"Accept-Language": "de"})
    assert "Das Passwort des Kontos wird gelöscht." in before
    assert f"{address} wird wieder die Adresse Ihres Kontos." in before
    assert f"{address} is its address again" in after
    assert refusal(await box.me(session)) == ENDED
    for gone in (others, last):
        assert refusal(await box.login(gone, NEW_PASSWORD)) == NOBODY
    assert refusal(await box.login(address, PASSWORD)) == NOBODY
    own = session_of(await box.code_login(address, await box.code(address, nth=4)))
    user = await me(box.server, own)
    assert (user["uid"], user["email"]) == (uid, {"email_address": address, "verified": True})

    news = await box.mail(last, nth=2)
    assert "an earlier address was restored" in news["text"]
    assert "/account/not-me" not in news["text"]
    # What the other addresses got: a new password, and changes of the address. Each address can end sessions once.
    for to, nth, done in ((others, 3, True), (others, 4, False), (others, 5, False), (last, 1, False)):
        _, after = await open_not_me(box, await box.mail(to, nth=nth))
        assert ("The account was logged out on all devices." in after) is done
        assert ("There is nothing to do" in after) is not done
    assert refusal(await box.me(own)) == ENDED
    own = session_of(await box.code_login(address, await box.code(address, nth=5)))
    assert (await me(box.server, own))["email"] == {"email_address": address, "verified": True}


@pytest.mark.parametrize("bound_days", [0, 8])
async def test_a_removed_address_is_restored_and_what_was_bound_lately_is_removed(box: Mailbox, bound_days: int):
    address, session = await new_owner(box)
    uid, other = (await me(box.server, session))["uid"], player()
    assert (await bind(box.server, session, other))[0] == 200
    await box.all_sent()  # An email that waits for longer than its link is valid is not sent.
    await box.server.services.clock.move("default", offset_s=bound_days * 86_400)
    session = session_of(await box.post("login", other))
    assert await box.post("me/email", None, "DELETE", **session) == (200, None)
    await open_not_me(box, await box.mail(address, nth=3))
    assert refusal(await box.me(session)) == ENDED
    status, reply = await box.post("login", other)
    assert (status, reply["user"]["uid"] == uid) == (200, bound_days > 7)
    session = session_of(await box.code_login(address, await box.code(address, nth=4)))
    user = await me(box.server, session)
    assert (user["uid"], user["email"]) == (uid, {"email_address": address, "verified": True})


async def test_a_bound_identity_is_reported_and_the_link_removes_it(box: Mailbox):
    address, session = await new_owner(box)
    uid, other = (await me(box.server, session))["uid"], player()
    assert (await bind(box.server, session, other))[0] == 200
    assert error_type((await bind(box.server, session, other))[1]) == "account.sp_linked_platform"
    news = await box.mail(address, nth=2)
    assert "Another sign-in method was linked to your account" in news["text"]
    await open_not_me(box, news)
    assert refusal(await box.me(session)) == ENDED
    assert (await box.post("login", other))[1]["user"]["uid"] != uid
    await box.all_sent()
    assert len(await box.mails(address)) == 2, "a bind that was refused sends no mail"


async def test_a_removed_identity_is_reported(box: Mailbox):
    address, session = await new_owner(box)
    other = player()
    assert (await bind(box.server, session, other))[0] == 200
    path = f"me/socialaccount/android_games_service/{other['android_games_service']['player_id']}"
    assert await box.post(path, None, "DELETE", **session) == (200, None)
    assert "A sign-in method was removed from your account." in (await box.mail(address, nth=3))["text"]


@pytest.mark.parametrize("proven", [False, True])
async def test_an_earlier_address_is_taken_back_from_whoever_has_not_proven_it(box: Mailbox, proven):
    address, session = await new_owner(box)
    others = new_address()
    await change_address(box, session, others)
    if proven:
        claimant = session_of(await box.code_login(address, await box.code(address, nth=4)))
    else:
        claimant = session_of(await box.sign_up(address))
    claimant_uid = (await me(box.server, claimant))["uid"]
    _, after = await open_not_me(box, await box.mail(address, nth=3))
    assert refusal(await box.me(session)) == ENDED
    assert ("belongs to another account now" in after) is proven
    if proven:
        assert (await me(box.server, claimant))["email"]["email_address"] == address
        return
    assert refusal(await box.me(claimant)) == ENDED
    claimant_path = f"/bp/server/user/{claimant_uid}/deactivate/recover"
    assert await ask(box.server, "POST", claimant_path, headers=token()) == (200, None), "it was frozen"
    user = session_of(await box.code_login(address, await box.code(address, nth=5)))
    assert (await me(box.server, user))["email"] == {"email_address": address, "verified": True}


@pytest.mark.parametrize("change", ["changed", "removed"])
async def test_the_owner_of_an_address_that_cannot_be_restored_ends_the_sessions_once(box: Mailbox, change: str):
    """An address cannot be restored if the account had it for less than a week, and not since its sign-up."""
    _, session = await new_owner(box)
    address, other = new_address(), player()
    await change_address(box, session, address)
    if change == "changed":
        await change_address(box, session, new_address())
    else:
        assert (await bind(box.server, session, other))[0] == 200
        assert await box.post("me/email", None, "DELETE", **session) == (200, None)
    thief = session_of(await box.post("login", other)) if change == "removed" else session
    await box.all_sent()
    news = (await box.mails(address))[0]
    assert "You can undo this" not in news["text"]
    before, after = await open_not_me(box, news)
    assert re.findall("<li>(.*?)</li>", before) == ["The account will be logged out on all devices."]
    assert "The account was logged out on all devices." in after
    assert refusal(await box.me(thief)) == ENDED
    before, after = await open_not_me(box, news)
    assert "There is nothing to do" in before
    assert "There is nothing to do" in after


async def test_an_address_that_was_never_proven_is_not_restored(box: Mailbox):
    address = new_address()
    attacker = session_of(await box.sign_up(address))
    await change_address(box, attacker, new_address())
    _, after = await open_not_me(box, await box.mail(address, nth=2))
    assert "logged out on all devices" in after
    assert refusal(await box.me(attacker)) == ENDED
    assert (await box.post("detect", {"email": address}))[1]["email_data"]["exists"] is False


async def test_the_link_expires_after_a_week(box: Mailbox):
    address, session = await new_owner(box)
    await change_address(box, session, new_address())
    link = link_in(await box.mail(address, nth=3))
    await box.later(7 * 86_400)
    async with box.server.http.get(link, headers={"Accept": "text/html"}) as response:
        assert (response.status, "does not work" in await response.text()) == (400, True)


async def test_the_mail_with_a_link_to_a_new_password_also_ends_all_sessions(box: Mailbox):
    address, session = await new_owner(box)
    code = await box.reset_code(address, nth=2)
    before, _ = await open_not_me(box, await box.mail(address, nth=2))
    assert "The password of the account will be deleted." in before
    assert refusal(await box.me(session)) == ENDED
    assert refusal(await box.login(address)) == NOBODY
    answer = await box.post("email/reset_password", {"random_code": code, "password": NEW_PASSWORD})
    assert refusal(answer) == (400, "account.code_invalid")


async def test_the_owner_of_an_address_that_somebody_else_entered_ends_that(box: Mailbox):
    _, session = await new_user(box.server)
    address = new_address()
    await box.configure(code_login=False, activation=True)
    try:
        assert await box.post("me/email", {"email": address, "platform": "ios"}, **session) == (200, None)
    finally:
        await box.configure(code_login=True, activation=True)
    mail = await box.mail(address)
    before, after = await open_not_me(box, mail)
    assert "password" not in before, "it is kept, because its user may have mistyped the address"
    assert "Your address was removed." in after
    assert refusal(await box.me(session)) == ENDED
    assert refusal(await box.get(path_of(link_in(mail)))) == (400, "account.code_invalid")
    before, after = await open_not_me(box, mail)
    assert "There is nothing to do" in before
    assert "There is nothing to do" in after


async def test_the_page_lists_what_pressing_its_button_changes(box: Mailbox):
    address, session = await new_owner(box)
    assert await box.post("me/email", {"email": new_address(), "platform": "ios"}, "PUT", **session) == (200, None)
    mail = await box.mail(address, nth=2)
    before, after = await open_not_me(box, mail)
    changes = [
        "The account will be logged out on all devices.",
        "The password of the account will be deleted.",
        "Sign-in methods that were linked in the last 7 days will be removed.",
        "The change to another email address will be cancelled.",
    ]
    assert re.findall("<li>(.*?)</li>", before) == changes
    assert "Your account is secured." in after
    own = session_of(await box.code_login(address, await box.code(address, nth=3)))
    assert (await me(box.server, own))["email"] == {"email_address": address, "verified": True}
    before, _ = await open_not_me(box, mail)
    assert re.findall("<li>(.*?)</li>", before) == changes[:3]
