"""The tracking pixel: the same image always, and an event for each request for an email (§4.15, §6.3)."""

from html import escape
from json import loads  # noqa: TID251 - an independent reader
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.mail.machine_opens import is_machine
from app.work.event_delivery import deliver_events
from storage.mail.opens import MAX_WAITING, Open
from streams.tasks import background
from streams.wire.ids import new_id
from tests.app.events.sinks import SECRET
from tests.app.mail.hub import Hub, Person, new_address, pixel_of
from tests.vendors.http.upstream import plain, running_upstream
from tests.waiting import until

PIXEL = "/bp/res/i.gif"
READER = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15"
GIF = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")


async def sink(hub: Hub, **fields: Any) -> None:
    await hub.server.services.opens.store_waiting()
    await hub.execute("delete from reported_events")
    await hub.configure("events", "crm", **({"stream": "crm", "events": ["email_operation"]} | fields))


async def get(hub: Hub, url: str, method: str = "GET", **headers: str) -> bytes:
    url = url if url.startswith("http") else hub.server.url + url
    given = {"User-Agent": READER} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with hub.server.http.request(method, url, headers=given) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "image/gif"
        assert response.headers["Cache-Control"] == "no-store, no-cache, must-revalidate, max-age=0"
        assert response.headers["Pragma"] == "no-cache"
        assert response.headers["Content-Length"] == "43"
        return await response.read()


async def stored(hub: Hub) -> list[dict[str, Any]]:
    """The data of the events that are stored, once all opens are."""
    await hub.server.services.opens.store_waiting()
    async with hub.server.services.database.connection() as conn:
        rows = await conn.fetch(
            "select uid, data from reported_events where event = 'email_operation' order by position"
        )
    assert all(row["uid"] == row["data"]["user_id"] for row in rows)
    return [row["data"] for row in rows]


async def sent(hub: Hub, **fields: Any) -> tuple[Person, str]:
    """Send an email to a new user. Return the user, and the URL of its pixel."""
    await hub.strategy(**fields)
    ada = await hub.person()
    assert await hub.send(ada) == (200, {})
    return ada, pixel_of(await hub.received(ada.email))


async def test_an_open_is_reported_with_what_the_interface_names(hub: Hub):
    await sink(hub)
    ada, url = await sent(hub)
    assert await get(hub, url) == GIF
    [data] = await stored(hub)
    [mail_id] = await hub.rows("mail_id", ada.uid)
    extra = loads(data.pop("extra"))
    assert data == {"email": ada.email, "status": "open", "message_id": mail_id, "user_id": ada.uid}
    assert extra.pop("ip").startswith("127.")
    assert extra == {
        "email": ada.email,
        "user_id": ada.uid,
        "message_id": mail_id,
        "user_agent": READER,
        "machine_open": False,
    }
    assert await hub.rows("opens, machine_opens", ada.uid) == [(1, 0)]


async def test_a_blank_in_the_address_is_a_plus_that_was_not_encoded(hub: Hub):
    await sink(hub)
    await hub.strategy()
    address = new_address().replace("@", "+news@")
    assert await hub.send(await hub.person(), email_to=address) == (200, {})
    url = pixel_of(await hub.received(address))
    for raw in ("%2B", "+", "%20"):
        await get(hub, url.replace("%2B", raw))
    assert [data["email"] for data in await stored(hub)] == [address] * 3


async def test_long_names_are_aliases_and_each_request_is_one_event(hub: Hub):
    await sink(hub)
    _, url = await sent(hub)
    query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    long = f"{PIXEL}?email={query['e'].upper()}&message_id={query['mid']}&user_id={query['u']}"
    for pixel in (url, long, long):
        await get(hub, pixel)
    assert await get(hub, url, "HEAD") == b""
    assert len(await stored(hub)) == 3


@pytest.mark.parametrize(
    "given",
    [{}, {"Connection": "close"}, {"X_Service_App_Id": "no-such-app"}, {"X_Service_Api_Version": "99"}],
    ids=["directly", "by the pipeline", "app", "version"],
)
@pytest.mark.parametrize(
    "query",
    ["", "?", "?e=", "?e=a@b.de", f"?mid={'0' * 32}", f"?e=a@b.de&mid={'0' * 32}", "?e=a@b.de&mid=x",
     "?e=%ff&mid=%ff", "?e=%00&mid=%00", "?e=%F0%9F%98%80&mid=%F0%9F%98%80", f"?e={'a' * 4000}&mid={'b' * 3000}",
     "?mid=1&mid=2&e",
     "?%zz"],
)  # fmt: skip
async def test_the_image_is_the_same_whatever_is_asked(hub: Hub, query: str, given: dict[str, str]):
    await sink(hub)
    assert await get(hub, PIXEL + query, **given) == GIF
    assert await stored(hub) == []


@pytest.mark.parametrize("given", [{}, {"Connection": "close"}], ids=["directly", "by the pipeline"])
async def test_an_open_is_reported_without_the_character_zero_of_its_query(hub: Hub, given: dict[str, str]):
    await sink(hub)
    ada, url = await sent(hub)
    zeros = url.replace("e=", "e=%00").replace("mid=", "mid=%00").replace("u=", "u=%00")
    assert await get(hub, f"{zeros}%00&%00=%00", **given) == GIF
    assert await get(hub, f"{zeros}%00", "HEAD", **given) == b""
    assert [(data["email"], data["user_id"]) for data in await stored(hub)] == [(ada.email, ada.uid)]


async def test_a_plus_in_the_address_of_a_query_is_a_plus(hub: Hub):
    await sink(hub)
    ada, to = await hub.person(), f"ada+{new_address()}"
    assert await hub.send(ada, email_to=to) == (200, {})
    assert await get(hub, pixel_of(await hub.received(to)).replace("%2B", "+")) == GIF
    assert [data["email"] for data in await stored(hub)] == [to]


async def test_forged_queries_report_nothing_and_a_forged_user_is_not_reported(hub: Hub):
    await sink(hub)
    ada, url = await sent(hub)
    query = parse_qs(urlsplit(url).query)
    mail_id, email = query["mid"][0], ada.email
    for forged in (
        f"?e=eve@example.com&mid={mail_id}",
        f"?e={email}&mid={mail_id[:-1]}{int(mail_id[-1] == '0')}",
        f"?e={email}&mid={new_id()}",
        f"?e={email}&mid={mail_id.upper()}x",
        f"?e={email}",
        f"?mid={mail_id}",
    ):
        assert await get(hub, PIXEL + forged) == GIF
    assert await stored(hub) == []
    eve = await hub.person()
    await get(hub, f"{PIXEL}?e={email}&mid={mail_id}&u={eve.uid}")
    await get(hub, f"{PIXEL}?e={email}&mid={mail_id}")
    assert [data["user_id"] for data in await stored(hub)] == [ada.uid, ada.uid]


async def test_the_user_is_that_of_the_address_if_the_query_names_none(hub: Hub):
    await sink(hub)
    ada, eve = await hub.person(), await hub.person()
    assert await hub.send(ada, email_to=eve.email) == (200, {})
    url = pixel_of(await hub.received(eve.email))
    await get(hub, url.partition("&u=")[0])
    await get(hub, url)
    assert [data["user_id"] for data in await stored(hub)] == [eve.uid, ada.uid]
    to = new_address()
    await hub.strategy("other")
    assert await hub.send(ada, "other", email_to=to) == (200, {})
    await get(hub, pixel_of(await hub.received(to)).partition("&u=")[0])
    assert [data["user_id"] for data in await stored(hub)][2:] == [ada.uid]


@pytest.mark.parametrize("given", [{}, {"Connection": "close"}], ids=["directly", "by the pipeline"])
async def test_a_raw_plus_in_the_address_is_a_plus(hub: Hub, given: dict[str, str]):
    await sink(hub)
    ada, to = await hub.person(), f"ada+{new_id()}@example.com"
    assert await hub.send(ada, email_to=to) == (200, {})
    url = pixel_of(await hub.received(to))
    assert "ada%2B" in url
    for written in (url, url.replace("%2B", "+")):
        await get(hub, written, **given)
    assert [data["email"] for data in await stored(hub)] == [to, to]


async def test_without_a_sink_opens_are_only_counted(hub: Hub):
    await sink(hub, events=["account"])
    ada, url = await sent(hub)
    await get(hub, url)
    await get(hub, url, User_Agent="Mozilla/5.0")
    assert await stored(hub) == []
    assert await hub.rows("opens, machine_opens", ada.uid) == [(1, 1)]


async def test_an_email_that_is_not_tracked_has_no_opens(hub: Hub):
    await sink(hub)
    ada, _ = await sent(hub, track=False)
    [mail_id] = await hub.rows("mail_id", ada.uid)
    await get(hub, f"{PIXEL}?e={ada.email}&mid={mail_id}&u={ada.uid}")
    assert await stored(hub) == []


async def test_opens_wait_for_the_database_and_the_image_does_not(hub: Hub):
    await sink(hub)
    ada, url = await sent(hub)
    async with hub.server.services.database.transaction() as conn:
        await conn.execute("lock table mails")
        for _ in range(3):
            assert await get(hub, url) == GIF
        assert await conn.fetchval("select count(*) from reported_events") == 0

    async def reported() -> bool:
        async with hub.server.services.database.connection() as conn:
            return await conn.fetchval("select count(*) from reported_events") == 3

    await until(reported)
    assert await hub.rows("opens", ada.uid) == [3]


async def test_a_signed_webhook_gets_opens(hub: Hub):
    async with running_upstream() as webhook:
        webhook.respond_with(plain(500), plain(204))
        await sink(hub, stream=None, url=f"{webhook.url}/crm", secret=SECRET)
        ada, url = await sent(hub)
        await get(hub, url)
        assert len(await stored(hub)) == 1
        async with background(deliver_events(hub.server.services, poll_s=0.05)):
            await until(lambda: len(webhook.seen) == 2)
    first, second = (loads(call.body) for call in webhook.seen)
    assert first == second
    assert (first["event"], first["app_id"], first["data"]["email"]) == ("email_operation", "default", ada.email)


async def test_the_welcome_email_of_development_has_a_pixel_that_its_page_may_load(hub: Hub):
    ada = await hub.person()
    assert await hub.send(ada, "welcome", custom_variables={"name": "Ada"}) == (200, {})
    mail = await hub.received(ada.email)
    assert mail["subject"] == "Welcome, Ada"
    url = pixel_of(mail)
    async with hub.server.http.get(f"{hub.server.url}/dev/mail", headers={"Accept": "text/html"}) as response:
        page, policy = await response.text(), response.headers["Content-Security-Policy"]
    assert escape(escape(url)) in page
    assert f"img-src data: {url.partition('?')[0]};" in policy


async def test_the_queue_is_bounded(hub: Hub):
    opens = hub.server.services.opens
    async with hub.server.services.database.transaction() as conn:
        await conn.execute("lock table mails")
        for _ in range(MAX_WAITING + 100):
            opens.add(Open("a@example.com", new_id(), "", "", "", machine=False))
        assert opens.waiting == MAX_WAITING
        assert await get(hub, f"{PIXEL}?e=a@example.com&mid={new_id()}") == GIF
    await opens.store_waiting()


@pytest.mark.parametrize(
    ("user_agent", "machine"),
    [
        (READER, False),
        ("Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)", False),
        ("YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html", False),
        ("Mozilla/5.0", True),
        ("", True),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0", True),
        ("Mozilla/5.0 (compatible; Barracuda Sentinel)", True),
        ("Googlebot/2.1", True),
        ("python-requests/2.32", True),
    ],
)
def test_known_programs_are_no_readers(user_agent: str, *, machine: bool):
    assert is_machine(user_agent, {}) is machine


def test_a_request_may_say_that_it_is_a_prefetch():
    assert is_machine(READER, {"sec-purpose": "prefetch;prerender"})
    assert is_machine(READER, {"x-moz": "prefetch"})
    assert not is_machine(READER, {"sec-purpose": "other"})
