"""The emails and the text messages that a development server keeps, as browsers and programs get them."""

import re
from collections.abc import AsyncIterator
from email import message_from_string, policy
from html import unescape
from typing import Any

import pytest

from tests.app.accounts.email.mailbox import Mailbox, new_address, open_mailbox
from tests.running.servers import Databases
from tests.waiting import until

NUMBER, OTHER = "+4915112345678", "+4915112345679"
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PROGRAMS = ("*/*", "application/json", "text/html;q=0.1, application/json")


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mailbox]:
    async with open_mailbox(databases, tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture
async def box(testbed: Mailbox) -> Mailbox:
    await testbed.configure(code_login=True)
    return testbed


async def page(box: Mailbox, path: str, **query: str) -> str:
    async with box.server.http.get(box.server.url + path, params=query, headers=BROWSER) as response:
        assert (response.status, response.content_type) == (200, "text/html")
        assert response.headers["Vary"] == "Accept"
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'; connect-src 'self';" in policy
        return await response.text()


async def text_to(box: Mailbox, number: str) -> dict[str, Any]:
    assert (await box.post("send_phone_verify_code", {"phone_number": number}))[0] == 200

    async def messages() -> list[dict[str, Any]]:
        return (await box.get("/dev/sms", params={"to": number}))[1]["messages"]

    await until(messages)
    return (await messages())[0]


async def test_text_messages_are_a_page_for_browsers_and_json_for_all_others(box: Mailbox):
    empty = await page(box, "/dev/sms")
    assert "There are no text messages yet." in empty
    first, second = await text_to(box, NUMBER), await text_to(box, OTHER)
    shown = await page(box, "/dev/sms")
    assert re.findall(r'<li data-id="(\w+)">', shown) == [second["id"], first["id"]]
    for message in (first, second):
        assert f'data-copy="{message["code"]}" hidden>Copy</button>' in shown
        assert message["to"] in shown
    one = await page(box, "/dev/sms", to=NUMBER)
    assert first["id"] in one
    assert second["id"] not in one
    assert 'href="/dev/sms" aria-current="page"' in shown
    for accept in PROGRAMS:
        async with box.server.http.get(f"{box.server.url}/dev/sms", headers={"Accept": accept}) as response:
            assert (response.content_type, response.headers["Vary"]) == ("application/json", "Accept")
            assert await response.json() == {"messages": [second, first]}


async def test_an_email_is_shown_as_html_as_text_and_as_it_arrived(box: Mailbox):
    address = new_address()
    code = await box.code(address)
    [mail] = await box.mails(address)
    for accept in PROGRAMS:
        async with box.server.http.get(f"{box.server.url}/dev/mail", headers={"Accept": accept}) as response:
            assert (response.content_type, response.headers["Vary"]) == ("application/json", "Accept")
            assert mail in await response.json()
    shown = await page(box, "/dev/mail", to=address)
    assert re.findall(r'value="(html|text|source)"', shown) == ["html", "text", "source"]
    frame = re.search(r'<iframe [^>]*sandbox="([^"]*)"[^>]* srcdoc="([^"]*)"', shown)
    assert frame
    assert frame[1] == "allow-popups allow-popups-to-escape-sandbox"
    assert unescape(frame[2]) == f'<base target="_blank">{mail["html"]}'
    raw = re.search(r'<pre class="raw"[^>]*>(.*?)</pre>', shown, re.DOTALL)
    assert raw
    message = message_from_string(unescape(raw[1]), policy=policy.default)
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert all(code in part.get_content() for part in message.iter_parts())
    assert mail["headers"]["Message-ID"] == message["Message-ID"]


async def test_the_newest_email_is_open_unless_another_one_is_chosen(box: Mailbox):
    address = new_address()
    codes = [await box.code(address, nth=nth) for nth in (1, 2)]
    newest, older = await box.mails(address)
    heading = r'<article class="mail( chosen)?">.*?<h2>(\d+)'
    assert re.findall(heading, await page(box, "/dev/mail", to=address)) == [("", codes[1])]
    chosen = await page(box, "/dev/mail", to=address, id=older["id"])
    assert re.findall(heading, chosen) == [(" chosen", codes[0])]
    assert re.findall(r'<li data-id="(\w+)">', chosen) == [newest["id"], older["id"]]
    unknown = await page(box, "/dev/mail", to=address, id='"><script>')
    assert re.findall(heading, unknown) == [(" chosen", codes[1])]
    assert "<script>" not in unknown
    assert "There are no emails to this address yet." in await page(box, "/dev/mail", to=new_address())
