"""Recipients unsubscribe, and operators keep the list of addresses that get no emails of strategies."""

import re
from typing import Any

import pytest

from streams.wire.errors import InvalidParameter
from streams.wire.page_style import LOGO
from tests.app.callers import ask
from tests.app.mail.hub import Hub, Person, new_address
from tests.running.servers import ADMIN_TOKEN

LIST = "/admin/api/suppressions"


def header_urls(mail: dict[str, Any]) -> list[str]:
    return re.findall(r"<([^>]*)>", mail["headers"]["List-Unsubscribe"])


async def admin(hub: Hub, method: str, path: str = "", **options: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "a test"}
    return await ask(hub.server, method, f"{LIST}{path}", headers=headers, **options)


async def listed(hub: Hub, **query: str) -> list[tuple[str, str, str]]:
    status, reply = await admin(hub, "GET", params=query)
    assert status == 200, reply
    return [(row["address"], row["strategy"], row["reason"]) for row in reply["suppressions"]]


async def status_after_send(hub: Hub, person: Person, name: str = "news") -> str:
    assert await hub.send(person, name) == (200, {})
    await hub.work_off()
    return str((await hub.rows("status", person.uid))[-1])


async def test_one_click_unsubscribes_from_the_strategy(hub: Hub):
    ada, other = await hub.person(), await hub.strategy("other")
    assert await hub.send(ada) == (200, {})
    mail = await hub.received(ada.email)
    [url] = header_urls(mail)
    assert mail["headers"]["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    for _ in range(2):  # Mail programs may repeat it.
        async with hub.server.http.post(url, data={"List-Unsubscribe": "One-Click"}) as response:
            assert (response.status, await response.json()) == (200, {})
    assert await listed(hub) == [(ada.email, "news", "unsubscribed")]
    assert await status_after_send(hub, ada) == "suppressed"
    assert await status_after_send(hub, ada, other) == "sent"
    assert [mail["subject"] for mail in await hub.mails(ada.email)] == ["Hi ", "Hi "]
    body = {"email": ada.email, "platform": "ios", "type": "login_email"}
    assert (await ask(hub.server, "POST", "/bp/user/send_email_verify_code", json=body))[0] == 200
    await hub.work_off()
    everything = await ask(hub.server, "GET", "/dev/mail", params={"to": ada.email}, headers={"Accept": "x/y"})
    assert any("code" in mail["subject"] for mail in everything[1]), "codes arrive nevertheless"


async def test_opening_the_link_changes_nothing_and_its_button_unsubscribes(hub: Hub):
    await hub.strategy(text="{{.UnsubscribeURL}}")
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    url, browser = (await hub.received(ada.email))["text"].strip(), {"Accept": "text/html"}
    async with hub.server.http.get(url, headers=browser) as response:
        page = await response.text()
        assert (response.status, response.content_type) == (200, "text/html")
    assert ada.email in page
    assert "<script" not in page
    assert await listed(hub) == []
    action = re.search(r'<form method="post" action="([^"]+)"', page)
    assert action
    async with hub.server.http.post(hub.server.url + action[1], headers=browser) as response:
        assert "unsubscribed" in await response.text()
    assert await listed(hub, address=ada.email.upper()) == [(ada.email, "news", "unsubscribed")]


async def test_an_email_that_waits_is_not_sent_to_who_has_unsubscribed_meanwhile(hub: Hub):
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    assert await admin(hub, "PUT", f"/default/{ada.email}", json={}) == (200, {})
    await hub.work_off()
    assert await hub.rows("status", ada.uid) == ["suppressed"]
    assert await hub.mails(ada.email) == []


@pytest.mark.parametrize(
    ("own", "post", "urls", "one_click"),
    [
        ("mailto:out@example.com?subject=out", False, ["mailto:out@example.com?subject=out", "http"], True),
        ("https://example.com/out", False, ["https://example.com/out"], False),
        ("https://example.com/out", True, ["https://example.com/out"], True),
    ],
)
async def test_an_app_has_its_own_url(hub: Hub, own: str, urls: list[str], *, post: bool, one_click: bool):
    await hub.strategy(list_unsubscribe=own, list_unsubscribe_post=post)
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    mail = await hub.received(ada.email)
    found = header_urls(mail)
    assert all(link.startswith(url) for link, url in zip(found, urls, strict=True))
    assert mail["headers"].get("List-Unsubscribe-Post") == ("List-Unsubscribe=One-Click" if one_click else None)


@pytest.mark.parametrize("own", [None, "mailto:out@example.com"])
async def test_only_a_url_that_can_be_called_takes_a_post(hub: Hub, own: str | None):
    with pytest.raises(InvalidParameter, match="list_unsubscribe_post needs list_unsubscribe to be an https: URL"):
        await hub.strategy("posts", list_unsubscribe=own, list_unsubscribe_post=True)


@pytest.mark.parametrize("token", ["", "x", "A" * 200, "%ff", "=" * 3000])
async def test_a_forged_token_is_refused(hub: Hub, token: str):
    for method in ("GET", "POST"):
        status, reply = await ask(hub.server, method, f"/bp/res/unsubscribe?token={token}")
        assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
        url = f"{hub.server.url}/bp/res/unsubscribe"
        async with hub.server.http.request(
            method, url, params={"token": token}, headers={"Accept": "text/html"}
        ) as response:
            assert (response.status, response.content_type) == (400, "text/html")
            page = await response.text()
            assert "<h1>This link does not work</h1>" in page
            assert f"<header>{LOGO}Parley</header>" in page
    assert await listed(hub) == []


async def test_operators_add_list_and_remove(hub: Hub):
    addresses = sorted(new_address() for _ in range(3))
    for address in addresses:
        assert await admin(hub, "PUT", f"/default/{address.upper()}", json={}) == (200, {})
    assert await admin(hub, "PUT", f"/default/{addresses[0]}", json={"strategy": "news"}) == (200, {})
    everything = [(addresses[0], "", "operator"), (addresses[0], "news", "operator"),
                  *((address, "", "operator") for address in addresses[1:])]  # fmt: skip
    assert await listed(hub) == everything
    seen, position = [], {}
    while True:
        _, reply = await admin(hub, "GET", params={"size": "1", **position})
        seen += [row["address"] for row in reply["suppressions"]]
        if "next" not in reply:
            break
        position = {"before": reply["next"]}
    assert seen == [addresses[0], *addresses]
    assert await admin(hub, "DELETE", f"/default/{addresses[0]}") == (200, {})
    assert await listed(hub, address=addresses[0]) == [(addresses[0], "news", "operator")]
    assert await admin(hub, "DELETE", f"/default/{addresses[0]}", params={"strategy": "news"}) == (200, {})
    async with hub.server.services.database.connection() as conn:
        audited = await conn.fetch("select action, name from audit where kind = 'suppression' order by audit_id")
    assert [row["action"] for row in audited][-6:] == ["suppression.add"] * 4 + ["suppression.remove"] * 2
    assert not any("@" in row["name"] for row in audited)


async def test_listed_errors_of_the_list(hub: Hub):
    for method in ("PUT", "DELETE"):
        assert (await admin(hub, method, "/default/nobody"))[0] == 400
        status, reply = await admin(hub, method, "/none/a@example.com")
        assert (status, reply["error"]["error_type"]) == (404, "item_not_found")
    assert (await admin(hub, "DELETE", "/default/a@example.com"))[0] == 404
    assert (await admin(hub, "GET", params={"app": "none"}))[0] == 404
    assert (await admin(hub, "GET", params={"before": "x"}))[0] == 400
    assert (await ask(hub.server, "GET", LIST))[0] == 401
