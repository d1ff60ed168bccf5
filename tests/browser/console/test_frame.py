"""The console: what surrounds its pages, such as the end of a session, wrong addresses and errors."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, Page, Route, expect

from storage.tokens import digest
from tests.browser.console.console_page import check, execute, viewing
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server

EVENTS = "/admin/api/overview/events"
LOOKS_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"
"""What the browser does when an operator comes back to the page."""

WRONG_ADDRESSES = (
    "nonsense",
    "overview/nonsense",
    "money/nonsense",
    "money/webhooks/one/more",
    "operations/zzz",
    "streams/nonsense",
    "jobs/queues/nonsense",
    "users/default",
    "users/default/u/bogus",
    "users/default/u/orders",
    "configs/default/apps",
    "engagement/boards/default",
    "users/%",
    "constructor",
    "toString",
    "__proto__",
    "money/constructor",
)
ADDRESSES = {"": "Overview", "operations/logins": "Operations", "streams/ended": "Streams", "jobs/held": "Jobs"}

AWAY = {"error": {"message": "database_unavailable: PostgreSQL is not available"}}
FAILED = {"error": {"message": "internal: the server failed"}}
LIMITED = {"error": {"message": "api_rate_limit: too many failed calls"}}
ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "a proxy": (
        {"status": 502, "content_type": "text/html", "body": "<h1>Bad Gateway</h1>"},
        "The server cannot answer now. Try again in a moment.",
    ),
    "a proxy that says it is well": (
        {"status": 200, "content_type": "text/html", "body": "<h1>Welcome</h1>"},
        "The server gave no usable answer (status 200).",
    ),
    "a store": ({"status": 503, "json": AWAY}, "PostgreSQL is not available. Try again in a moment."),
    "a bug": (
        {"status": 500, "json": FAILED, "headers": {"X-Request-Id": "r-1"}},
        "The server has failed. Its log says why, under request r-1.",
    ),
    "a limit": (
        {"status": 429, "json": LIMITED, "headers": {"Retry-After": "900"}},
        "Too many failed calls. Try again in 15\u00a0min.",
    ),
}
"""What answers in place of the doctor's report, and what the page says."""


def answering(answer: dict[str, Any]) -> Callable[[Route], Awaitable[None]]:
    """Returns what plays a proxy that answers in place of the server."""

    async def respond(route: Route) -> None:
        await route.fulfill(**answer)

    return respond


async def end_session(page: Page, server: Server) -> None:
    [cookie] = [each for each in await page.context.cookies() if each["name"] == "parley_console"]
    ended = "update operator_sessions set used_at = now() - interval '61 minutes' where digest = $1"
    await execute(server, ended, digest(cookie["value"]))


async def test_an_overview_that_was_left_open_asks_once_more_and_then_to_sign_in(
    page: Page, server: Server, page_faults: PageFaults
) -> None:
    page_faults.expected = [f"401.*{EVENTS}"]
    asked: list[int] = []
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.on("response", lambda response: urlsplit(response.url).path == EVENTS and asked.append(response.status))
    await end_session(page, server)
    await page.evaluate(LOOKS_AGAIN)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_text("Your session has ended. Sign in again.")
    await check(page, "session-ended")
    assert asked == [401]


async def test_an_address_that_names_no_page_says_so_and_leads_back(page: Page, server: Server) -> None:
    for address in WRONG_ADDRESSES:
        await page.goto(f"{server.url}/console#/{address}")
        await expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
        await page.goto(f"{server.url}/console#/money/ledger")  # So that the next page is not taken for this one.
        await expect(page.get_by_role("heading", name="Money", level=1)).to_be_visible()
    for address, heading in ADDRESSES.items():
        await page.goto(f"{server.url}/console#/{address}")
        await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    await page.goto(f"{server.url}/console#/users/default/u/bogus")
    await expect(page.get_by_role("link", name="Users", exact=True)).to_have_attribute("aria-current", "page")
    await check(page, "no-page")
    await page.get_by_role("link", name="Go to the overview").click()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


async def test_an_id_that_names_nothing_says_so(page: Page, server: Server, page_faults: PageFaults) -> None:
    page_faults.expected = ["404"]
    for address, said in {
        "users/default/nobody": "User nobody does not exist.",
        "engagement/boards/default/none": "Leaderboard none does not exist.",
    }.items():
        await page.goto(f"{server.url}/console#/{address}")
        await expect(page.get_by_role("alert")).to_contain_text(said)


async def test_an_error_is_in_the_words_of_a_person(page: Page, server: Server, page_faults: PageFaults) -> None:
    page_faults.expected = ["400", "429", "500", "502", "503"]
    await page.goto(f"{server.url}/console#/streams/ended?hours=many")
    await expect(page.get_by_role("alert")).to_contain_text("Hours must be ")
    for answer, said in ANSWERS.values():
        await page.route("**/admin/api/doctor", answering(answer))
        await page.goto(f"{server.url}/console#/operations/doctor")
        await expect(page.get_by_role("alert")).to_have_text(f"{said} Try again")
        await page.unroute("**/admin/api/doctor")
        await page.goto(f"{server.url}/console#/operations/limits")


async def test_a_server_that_cannot_say_who_is_signed_in_is_asked_again(
    page: Page, server: Server, page_faults: PageFaults
) -> None:
    page_faults.expected = ["503"]
    await page.route("**/admin/api/self", answering({"status": 503, "json": AWAY}))
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("PostgreSQL is not available. Try again in a moment.")
    await check(page, "unavailable")
    await page.unroute("**/admin/api/self")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


async def test_a_role_that_is_too_low_is_named(chromium: Browser, server: Server, page_faults: PageFaults) -> None:
    page_faults.expected = ["403"]
    async with viewing(chromium, server, page_faults) as page:
        await page.goto(f"{server.url}/console#/users/default/u/conversations/c")
        await expect(page.get_by_role("alert")).to_contain_text("This requires the role admin.")
