"""Sign-ups and logins with email addresses, and the codes for them (§4.1, §4.3, §4.4, §4.7)."""

import asyncio
import re

import pytest

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
from tests.app.accounts.people import bind, new_user, player


async def test_a_code_logs_in_and_creates_the_user(box: Mailbox):
    address = new_address()
    status, reply = await box.code_login(f" {address.upper()} ", await box.code(address))
    assert (status, set(reply), reply["user"]["is_new_user"]) == (200, {"user"}, True)
    assert reply["user"]["email"] == {"email_address": address, "verified": True}
    assert reply["user"]["social_accounts"] == []
    status, again = await box.code_login(address, await box.code(address, nth=2))
    assert (again["user"]["uid"], again["user"]["is_new_user"]) == (reply["user"]["uid"], False)


async def test_addresses_and_codes_are_read_as_they_are_shown(box: Mailbox):
    address = f"jean-{new_address()}"
    local, _, domain = address.partition("@")
    arabic = str.maketrans("0123456789", "".join(map(chr, range(0x660, 0x66A))))
    typed = f"\ufeff\u00a0{local.replace('-', chr(0x2011))}\u200b\uff20{domain.replace('.', chr(0xFF0E))}\u3000"
    asked = {"email": typed, "platform": "ios", "type": "login_email"}
    assert (await box.post("send_email_verify_code", asked))[0] == 200
    [code] = re.findall(r"\b\d{6}\b", (await box.mail(address))["text"])
    status, reply = await box.code_login(typed, f"{code[:3]}\u2009\u2212{code[3:]}\u200f".translate(arabic))
    assert (status, reply["user"]["email"]) == (200, {"email_address": address, "verified": True})
    # Whether the blank stands for a plus is unknown.
    assert refusal(await box.code_login(f"ada b@{domain}", code)) == (400, "invalid_parameter")


async def test_the_reset_code_of_an_email_may_be_wrapped(box: Mailbox):
    address = new_address()
    assert (await box.sign_up(address))[0] == 200
    code = await box.reset_code(address, nth=2)
    wrapped = f"\u200e{code[:20]}\u00ad\r\n {code[20:].replace('-', chr(0x2011))}"
    body = {"random_code": wrapped, "password": NEW_PASSWORD}
    assert (await box.post("email/reset_password", body)) == (200, None)
    assert (await box.login(address, NEW_PASSWORD))[0] == 200


async def test_a_user_signs_up_with_a_password_and_verifies_the_address_by_a_link(box: Mailbox):
    address = new_address()
    status, reply = await box.sign_up(address, platform="website")
    assert (status, reply["user"]["email"]) == (200, {"email_address": address, "verified": False})
    session = session_of((status, reply))
    link = link_in(await box.mail(address))
    assert link.startswith(f"{box.server.url}/bp/user/email/verify?verify_code=")
    result = "/bp/user/me/email/verify_result"
    unverified = {"verify_result": {"verified": False, "verified_time": "0001-01-01T00:00:00Z"}}
    assert await box.get(result, headers=session) == (200, unverified)
    async with box.server.http.head(link) as response:
        assert response.status == 200
    assert (await box.get(result, headers=session))[1] == unverified
    for _ in range(2):
        assert await box.get(path_of(link)) == (200, {})
    status, verified = await box.get(result, headers=session)
    assert verified["verify_result"]["verified"] is True
    assert verified["verify_result"]["verified_time"].startswith("20")
    assert (await box.me(session))[1]["user"]["email"]["verified"] is True
    assert (await box.login(address))[0] == 200


async def test_an_address_that_is_taken_cannot_sign_up(box: Mailbox):
    address = new_address()
    assert (await box.sign_up(address))[0] == 200
    assert refusal(await box.sign_up(address.upper(), NEW_PASSWORD)) == (400, "account.email_already_exists")
    assert await box.post("detect", {"email": address}) == (200, {"email_data": {"exists": True}})
    assert await box.post("detect", {"email": new_address()}) == (200, {"email_data": {"exists": False}})


async def test_with_the_switch_a_sign_up_needs_a_code_of_its_own_type(box: Mailbox):
    await box.configure(sign_up_verification=True, code_login=True)
    address = new_address()
    assert refusal(await box.sign_up(address)) == (400, "account.code_empty")
    assert refusal(await box.sign_up(address, verify_code="000000")) == (400, "account.code_invalid")
    login_code = await box.code(address)
    assert refusal(await box.sign_up(address, verify_code=login_code)) == (400, "account.code_invalid")
    code = await box.code(address, "sign_up_email", nth=2)
    status, reply = await box.sign_up(address, verify_code=code)
    assert (status, reply["user"]["email"]["verified"]) == (200, True)


async def test_wrong_passwords_and_unknown_addresses_are_refused_alike(box: Mailbox):
    address = new_address()
    await box.sign_up(address)
    wrong = await box.login(address, NEW_PASSWORD)
    assert wrong == await box.login(new_address(), NEW_PASSWORD)
    assert wrong[1]["error"]["message"] == ("account.auth_failed: user does not exist or the password is wrong")


@pytest.mark.parametrize("frozen", [False, True], ids=["active", "frozen"])
@pytest.mark.parametrize("by", ["code", "bp_auth", "reset"])
async def test_the_first_proof_of_an_address_ends_what_was_made_without_it(box: Mailbox, by, frozen):
    address = new_address()
    attacker = session_of(await box.sign_up(address))
    other = player()
    assert (await bind(box.server, attacker, other))[0] == 200
    stolen = await box.post("login", other)
    if frozen:
        assert await box.post("me/deactivate", None, **attacker) == (200, None)
    if by == "code":
        status, reply = await box.code_login(address, await box.code(address, nth=2))
    elif by == "bp_auth":
        _, session = await new_user(box.server)
        body = {"email": address, "platform": "ios", "verify_code": await box.code(address, nth=2)}
        status, reply = await box.post("me/email", body, **session)
        assert refusal((status, reply)) == (400, "account.email_already_exists")
        status, reply = await box.post("login", {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]})
    if by != "reset":
        assert (status, reply["user"]["email"]["verified"]) == (200, True)
        assert reply["user"]["social_accounts"] == []
        assert (await box.me(session_of((status, reply))))[0] == 200
    else:
        body = {"random_code": await box.reset_code(address, nth=2), "password": NEW_PASSWORD}
        assert await box.post("email/reset_password", body) == (200, None)
        assert (await box.login(address, NEW_PASSWORD))[0] == 200
    assert refusal(await box.login(address)) == (400, "account.auth_failed")
    for session in (attacker, session_of(stolen)):
        assert refusal(await box.me(session)) == (400, "account.invalid_session")
        recovery = await box.post("me/deactivate/recover", None, **session)
        assert refusal(recovery) == (400, "account.invalid_session")
    status, separate = await box.post("login", other)
    assert separate["user"]["is_new_user"] is True
    assert refusal(await box.post("login", {"bp_auth_token": stolen[1]["bp_auth"]["bp_auth_token"]}))[0] == 400


async def test_200_concurrent_sign_ups_with_an_address_create_one_user(box: Mailbox):
    address = new_address()
    results = await asyncio.gather(*(box.sign_up(address) for _ in range(200)))
    assert [status for status, _ in results].count(200) == 1
    assert {refusal(result) for result in results if result[0] != 200} == {(400, "account.email_already_exists")}


async def test_of_200_concurrent_logins_with_a_code_one_wins(box: Mailbox):
    address = new_address()
    code = await box.code(address)
    results = await asyncio.gather(*(box.code_login(address, code) for _ in range(200)))
    assert sorted(status for status, _ in results) == [200] + [400] * 199


async def test_codes_that_are_old_are_out_of_date(box: Mailbox):
    address = new_address()
    first = await box.code(address)
    second = await box.code(address, nth=2)
    assert refusal(await box.code_login(address, first)) == (400, "account.code_out_of_date")
    await box.later(601)
    assert refusal(await box.code_login(address, second)) == (400, "account.code_out_of_date")


async def test_a_mail_is_in_the_language_of_its_reader_and_of_the_operator(box: Mailbox):
    address = new_address()
    body = {"email": address, "platform": "ios", "type": "login_email"}
    await box.post("send_email_verify_code", body, Accept_Language="xx, de-AT;q=0.8, en;q=0.5")
    mail = await box.mail(address)
    assert "Anmeldecode" in mail["subject"]
    assert mail["headers"]["Content-Language"] == "de"
    template = {
        "subject": "Hi {{.CustomVariables.name}}",
        "html": "<b>{{.CustomVariables.name}}</b> {{.Code}}",
        "text": "{{.CustomVariables.name}} {{.Code}} {{.CustomVariables.__class__}}",
    }
    await box.configure(code_login=True, templates={"login_email": {"fr": template, "default": template}})
    await box.post("send_email_verify_code", {**body, "custom_variables": {"name": "<Ada>"}})
    mail = await box.mail(address, nth=2)
    assert mail["subject"] == "Hi <Ada>"
    assert mail["html"].startswith("<b>&lt;Ada&gt;</b> ")
    assert mail["text"].startswith("<Ada> ")
    broken = {**body, "custom_variables": {"name": "x\r\nBcc: eve@example.com"}}
    assert refusal(await box.post("send_email_verify_code", broken)) == (400, "invalid_parameter")


async def test_codes_are_limited_per_address_and_type_and_per_caller(box: Mailbox):
    try:
        hour = {"count": 3, "per_s": 3600}
        await box.configure("limits", email_minute={"count": 1, "per_s": 60}, email_address=hour)
        address, body = new_address(), {"platform": "ios", "type": "login_email"}
        assert (await box.post("send_email_verify_code", {**body, "email": address}))[0] == 200
        refused = await box.post("send_email_verify_code", {**body, "email": address})
        assert refusal(refused) == (429, "api_rate_limit")
        assert (await box.post("email/forgot_password", {**body, "email": address}))[0] == 200
        assert (await box.post("send_email_verify_code", {**body, "email": new_address()}))[0] == 200
        assert (await box.post("send_email_verify_code", {**body, "email": new_address()}))[0] == 429
        for known in (True, False):
            other = new_address()
            if known:
                await box.sign_up(other)
            assert (await box.post("email/forgot_password", {**body, "email": other}))[0] == 429
    finally:
        await box.configure("limits")


async def test_an_unproven_password_cannot_log_in_by_another_form_of_the_address(box: Mailbox):
    assert (await box.sign_up("Ada@Exämple.com"))[0] == 200
    assert (await box.login("aDA@xn--exmple-cua.com", PASSWORD))[0] == 200
