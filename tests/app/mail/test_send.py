"""An app sends emails by its strategies: what arrives, and which errors there are (§4.15)."""

import asyncio
from typing import Any

import pytest

from tests.app.callers import ask, token
from tests.app.mail.hub import PATH, Hub, new_address, pixel_of

DAY_S = 86_400
DOTS = (
    "must not have two dots in a row, or a dot at the beginning or before the @: many mail servers refuse "
    "such addresses"
)
NO_ADDRESSES = ("ada", "a@b@c.de", "a@b.de, c@d.de", "a@b.de\r\nBcc: c@d.de", " ", f"{'a' * 400}@b.de", "<a@b.de>")


async def test_a_mail_goes_to_the_address_of_the_user(hub: Hub):
    ada = await hub.person()
    assert await hub.send(ada, custom_variables={"name": "Ada & Eve"}) == (200, {})
    mail = await hub.received(ada.email)
    assert (mail["subject"], mail["text"].strip()) == ("Hi Ada & Eve", "Hello Ada & Eve")
    assert "<p>Hello Ada &amp; Eve</p>" in mail["html"]
    [(mail_id, status, sent)] = await hub.rows("mail_id, status, sent_at is not null", ada.uid)
    assert (status, sent) == ("sent", True)
    assert mail["headers"]["Message-ID"] == f"<{mail_id}@127.0.0.1>"
    url = hub.server.url
    assert pixel_of(mail) == f"{url}/bp/res/i.gif?e={ada.email.replace('@', '%40')}&mid={mail_id}&u={ada.uid}"


async def test_an_app_server_and_a_client_may_name_the_recipient(hub: Hub):
    ada, to, by_server = await hub.person(with_email=False), new_address(), new_address()
    assert await hub.send(ada, email_to=f" {to.upper()} ") == (200, {})
    assert (await hub.received(to))["text"].strip() == "Hello"
    assert await hub.send_by_server(ada.uid, email_to=by_server) == (200, {})
    await hub.received(by_server)


@pytest.mark.parametrize("variable", ["TrackingPixelURL", "CustomVariables.TrackingPixelURL"])
async def test_a_client_cannot_replace_the_pixel(hub: Hub, variable: str):
    await hub.strategy(html=f'<img src="{{{{.{variable}}}}}">', variables=["name", "TrackingPixelURL"])
    ada, evil = await hub.person(), "https://evil.example/x.gif"
    status, reply = await hub.send(ada, custom_variables={"TrackingPixelURL": evil})
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
    assert await hub.send(ada, custom_variables={"TrackingPixelURL": "none"}) == (200, {})
    assert pixel_of(await hub.received(ada.email)).startswith(f"{hub.server.url}/bp/res/i.gif?e=")


async def test_without_tracking_there_is_no_pixel(hub: Hub):
    await hub.strategy(track=False)
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    assert pixel_of(await hub.received(ada.email)) == ""


async def test_each_listed_error_is_answered(hub: Hub):
    """Those of all endpoints are tested elsewhere."""
    ada, nobody = await hub.person(), await hub.person(with_email=False)
    await hub.strategy("closed", enable_api_email=False)
    await hub.strategy("lost", mail_accounts=["missing"])
    await hub.configure("mail_accounts", "bare", host="mail.example.com")
    await hub.strategy("bare", mail_accounts=["bare"])
    large = {"name": "x" * 4097}
    cases: list[tuple[Any, dict[str, Any], int, str]] = [
        (ada, {"name": 1}, 400, "invalid_parameter"),
        (ada, {"email_to": 1}, 400, "invalid_parameter"),
        (ada, {"custom_variables": []}, 400, "invalid_parameter"),
        (ada, {"custom_variables": large}, 400, "invalid_parameter"),
        (ada, {"custom_variables": dict.fromkeys(map(str, range(65)), "")}, 400, "invalid_parameter"),
        (ada, {"name": "none"}, 417, "config_invalid"),
        (ada, {"name": "lost"}, 417, "config_invalid"),
        (ada, {"name": "bare"}, 417, "config_invalid"),
        (ada, {"name": "closed", "email_to": "eve@example.com"}, 400, "mail_hub.api_email_invalid"),
        (ada, {"name": "closed", "email_to": ada.email}, 400, "mail_hub.api_email_invalid"),
        (nobody, {}, 400, "mail_hub.email_to_invalid"),
        (nobody, {"email_to": ""}, 400, "mail_hub.email_to_invalid"),
        *((ada, {"email_to": to}, 400, "mail_hub.email_to_invalid") for to in NO_ADDRESSES),
        (ada, {"custom_variables": {"name": "x" * 4096 * 64}}, 400, "invalid_parameter"),
        (ada, {"custom_variables": {"name": "x" * 320 * 1024}}, 413, "invalid_parameter"),
    ]  # fmt: skip
    for person, body, status, error_type in cases:
        for call in (
            hub.send(person, **{"name": "news", **body}),
            hub.send_by_server(person.uid, **{"name": "news", **body}),
        ):
            found, reply = await call
            assert (found, reply["error"]["error_type"]) == (status, error_type), (body, reply)
    assert (await ask(hub.server, "POST", PATH, json={}, headers=ada.session))[1]["error"]["message"] == (
        "invalid_parameter: name is required"
    )
    assert await hub.rows("status", ada.uid) == []
    assert (await ask(hub.server, "POST", PATH, json={"name": "news"}))[1]["error"]["error_type"] == (
        "account.invalid_session"
    )
    assert (await hub.send_by_server("0" * 32))[0] == 404


async def test_a_repeated_large_value_is_refused_before_it_is_rendered(hub: Hub):
    await hub.strategy(subject="News", html="{{.CustomVariables.name}}" * 10_000)
    ada = await hub.person()
    status, reply = await hub.send(ada, custom_variables={"name": "<" * 4096})
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
    assert "larger than 262144 bytes" in reply["error"]["message"]


async def test_one_email_of_a_strategy_is_sent_to_a_user_at_a_time(hub: Hub):
    ada, eve = await hub.person(), await hub.person()
    other = await hub.strategy("other")
    await hub.limit(mail_recipient={"count": 10, "per_s": DAY_S})
    replies = await asyncio.gather(*(hub.send(ada) for _ in range(5)))
    assert sorted(status for status, _ in replies) == [200, 409, 409, 409, 409]
    assert {reply["error"]["error_type"] for status, reply in replies if status == 409} == {
        "mail_hub.send_duplicate"
    }
    assert (await hub.send_by_server(ada.uid))[0] == 409
    assert await hub.send(ada, other) == (200, {})
    assert await hub.send(eve) == (200, {})
    await hub.work_off()
    assert len(await hub.mails(ada.email)) == 2
    assert await hub.send(ada) == (200, {})


async def test_an_email_whose_job_was_dropped_is_not_being_sent(hub: Hub):
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    await hub.execute("delete from procrastinate_jobs")
    assert await hub.send(ada) == (200, {})


async def test_a_repeated_key_sends_one_email(hub: Hub):
    ada = await hub.person()
    headers = {**ada.session, "Idempotency-Key": "one"}
    for _ in range(2):
        assert await ask(hub.server, "POST", PATH, json={"name": "news"}, headers=headers) == (200, {})
    await hub.work_off()
    assert len(await hub.mails(ada.email)) == 1


async def test_addresses_with_a_tag_are_one_recipient(hub: Hub):
    person, [local, domain] = await hub.person(), new_address().split("@")
    names = [await hub.strategy(f"s{number}") for number in range(4)]
    for name, to in zip(names, (local, f"{local}+a", f"{local}+b+c".upper()), strict=False):
        assert await hub.send(person, name, email_to=f"{to}@{domain}") == (200, {})
    for to in (local, f"{local}+d"):
        assert (await hub.send(await hub.person(), names[3], email_to=f"{to}@{domain}"))[0] == 429
    assert await hub.send(person, names[3], email_to=f"{local}x+a@{domain}") == (200, {})
    await hub.work_off()
    assert len(await hub.mails(f"{local}+a@{domain}")) == 1


async def test_the_characters_of_a_variable_arrive_as_they_are(hub: Hub):
    ada = await hub.person()
    for name in ("=?utf-8?q?Free=20coins?=", "क्\u200dष\xa0é\u3000x", f"{'word ' * 30}end", "a  b"):
        assert await hub.send_by_server(ada.uid, custom_variables={"name": name}) == (200, {})
        await hub.work_off()
        assert (await hub.mails(ada.email))[0]["subject"] == f"Hi {name}"


@pytest.mark.parametrize("to", ["a..b@example.com", "a.@example.com", ".a@example.com"])
async def test_dots_that_no_mail_server_accepts_are_named(hub: Hub, to: str):
    ada = await hub.person()
    status, reply = await hub.send(ada, email_to=to)
    assert (status, reply["error"]["message"]) == (400, f"mail_hub.email_to_invalid: email_to {DOTS}")


async def test_an_address_that_is_not_ascii_needs_an_account_that_sends_to_it(hub: Hub):
    ada, to = await hub.person(), "jörg@example.com"
    status, reply = await hub.send(ada, email_to=to)
    assert (status, reply["error"]["message"]) == (
        400, "mail_hub.email_to_invalid: email_to must have only ASCII characters before the @"
    )  # fmt: skip
    inbox = {"host": "{inbox}", "tls": "none", "from": "Ada <ada@example.com>"}
    await hub.configure("mail_accounts", "utf8", **inbox, smtputf8=True)
    await hub.strategy(mail_accounts=["inbox", "utf8"])
    assert await hub.send(ada, email_to=to) == (200, {})
    mail = await hub.received(to)
    assert (mail["headers"]["To"], mail["headers"]["From"]) == (to, "Ada <ada@example.com>")


async def test_clients_are_limited_per_user_and_recipient_and_servers_are_not(hub: Hub):
    names = [await hub.strategy(f"s{number}") for number in range(4)]
    people, to = [await hub.person(), await hub.person()], new_address()
    for name in names[:3]:
        assert await hub.send(people[0], name, email_to=to) == (200, {})
    status, reply = await hub.send(people[1], email_to=to.upper())
    assert (status, reply["error"]["error_type"]) == (429, "api_rate_limit")
    assert (await hub.send(people[0], names[2], email_to=to))[0] == 429
    assert await hub.send_by_server(people[0].uid, names[3], email_to=to) == (200, {})
    await hub.limit(mail_user={"count": 4, "per_s": DAY_S})
    assert await hub.send(people[0], "news") == (200, {})
    async with hub.server.http.post(
        hub.server.url + PATH, json={"name": names[3], "email_to": new_address()}, headers=people[0].session
    ) as response:
        assert (response.status, response.headers["RateLimit-Policy"].split(",")[0]) == (
            429,
            f'"mail_user";q=4;w={DAY_S}',
        )
        assert 0 < int(response.headers["Retry-After"]) <= DAY_S


@pytest.mark.parametrize(
    "body", [{}, {"name": "none"}, {"name": "news", "email_to": "ada"}, {"name": "news", "custom_variables": 1}]
)
async def test_a_refusal_says_how_many_emails_are_left(hub: Hub, body: Any):
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    url = hub.server.url + PATH
    for _ in range(2):
        async with hub.server.http.post(url, json=body, headers=ada.session) as response:
            assert response.status in {400, 417}
            assert response.headers["RateLimit-Policy"] == f'"mail_user";q=20;w={DAY_S}'
            assert response.headers["RateLimit"].startswith('"mail_user";r=19;t=')
    async with hub.server.http.post(
        hub.server.url + f"/bp/server/user/{ada.uid}/mail_hub/send", json=body, headers=token()
    ) as response:
        assert response.headers["RateLimit-Policy"] == '"server";q=200;w=2'


async def test_a_refused_email_does_not_count(hub: Hub):
    await hub.limit(mail_user={"count": 2, "per_s": DAY_S})
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    for _ in range(3):
        assert (await hub.send(ada))[0] == 409
    await hub.work_off()
    assert await hub.send(ada) == (200, {})
