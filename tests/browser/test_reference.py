"""The API reference: its contents, search and links, the sessions that it fills in, and its look."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.running.servers import Server

GROUPS = ["Apps", "App servers", "Operators", "Webhooks", "Development"]
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
CONVERSATION, USER = "POST/bp/ai/conversation", "GET/bp/user/me"
_DRAWN_WITHIN_MS = 20_000
_CUT_CODES = """() => [...document.querySelectorAll("#reference .markdown:not(.markdown-summary) :is(p, li) code")]
    .filter((code) => [...code.getClientRects()].some((line) =>
        line.right > code.closest("p, li").getBoundingClientRect().right + 1))
    .map((code) => code.innerText)"""
"""Returns the names in prose and lists whose end is not seen."""
_CUT_LINES = """() => [...document.querySelectorAll("#reference pre code")]
    .filter((code) => [...code.getClientRects()].some((line) =>
        line.right > code.closest("pre").parentElement.getBoundingClientRect().right + 1))
    .map((code) => code.innerText)"""
"""Returns the blocks of code with a line whose end is not seen."""
_BROKEN_CODES = """() => [...document.querySelectorAll("#reference code, #contents code")]
    .filter((code) => !code.closest("pre") && code.getClientRects().length > 1)
    .map((code) => code.innerText)
    .filter((name) => /^[\\w.:/-]+$/.test(name))
    .filter((name) => innerWidth > 640 || name.length < 40)"""
"""Returns the names in prose, lists and tables that are broken over lines, though a line has room for them."""

_TITLE_CASE = """(all) => all.flatMap((section) => [...section.querySelectorAll("h4, button, label")])
    .map((label) => label.innerText.trim()).filter((text) => /^[A-Z][a-z]+( [A-Z][a-z]+)+$/.test(text))"""
_COVERED_CODES = """(card) => [...card.querySelectorAll(".tab")].filter((code) => {
    const { left, top, width, height } = code.getBoundingClientRect();
    return !code.contains(document.elementFromPoint(left + width - 2, top + height / 2));
}).map((code) => code.innerText)"""
"""Returns the status codes whose end is not seen."""

PLACEHOLDER_COLORS = "(all) => all.map((field) => getComputedStyle(field, '::placeholder').color)"

Open = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def opened(chromium: Browser, server: Server, page_faults: PageFaults) -> AsyncIterator[Open]:
    contexts = []

    async def open_page(anchor: str = "", **options: Any) -> Page:
        context = await chromium.new_context(**(options or DESK))
        contexts.append(context)
        page_faults.watch(context, server.url.removeprefix("http://"))
        page = await context.new_page()
        await page.goto(f"{server.url}/docs{anchor}")
        await expect(page.locator("#reference section").first).to_be_visible(timeout=_DRAWN_WITHIN_MS)
        return page

    yield open_page
    for context in contexts:
        await context.close()


async def test_the_reference_is_shown_without_a_warning_and_links_to_the_document(
    opened: Open, server: Server
) -> None:
    page = await opened()
    warnings = []
    page.on("console", lambda message: warnings.append(message.text) if message.type == "warning" else None)
    await page.reload()
    link = page.get_by_role("link", name="Download OpenAPI Document").first
    await expect(link).to_be_visible(timeout=_DRAWN_WITHIN_MS)
    assert not warnings
    async with server.http.get(server.url + urlsplit(await link.get_attribute("href")).path) as response:
        assert "x-events" in (await response.json())["paths"]["/bp/ai/conversation"]["post"]


async def test_the_first_view_says_what_the_api_is_and_leads_on(opened: Open, server: Server) -> None:
    page = await opened()
    start = page.locator("#reference .markdown").first
    await expect(start.get_by_text(f"curl {server.url}/bp/user/login")).to_be_in_viewport()
    await expect(start.get_by_role("link", name="Your first app")).to_have_attribute(
        "href", "/docs/guides/first-app"
    )
    for card in ("Sign in", "Payments", "Webhooks", "Conversations"):
        await expect(start.get_by_role("link", name=card)).to_be_in_viewport()
        anchor = await start.get_by_role("link", name=card).get_attribute("href")
        await expect(page.locator(f"#contents details[data-anchor='{anchor.removeprefix('#')}']")).to_be_attached()
    await start.get_by_role("link", name="Conversations").click()
    await expect(page.locator("#reference").get_by_role("heading", name="Conversations")).to_be_in_viewport(
        timeout=_DRAWN_WITHIN_MS
    )


async def test_one_group_and_one_section_of_the_contents_are_open(opened: Open) -> None:
    page = await opened()
    groups = page.locator("#contents details.group")
    opened_groups = page.locator("#contents details.group[open] > summary")
    assert await groups.locator("> summary").all_inner_texts() == GROUPS
    assert await opened_groups.all_inner_texts() == ["Apps"]
    sections = groups.first.locator(".section > summary")
    assert (await sections.all_inner_texts())[:3] == ["Conversations", "Speech", "Pronunciation"]
    for summary in [*(await sections.all()), *(await groups.locator("> summary").all())]:
        box = await summary.bounding_box()
        assert box["y"] + box["height"] <= DESK["viewport"]["height"]
    await groups.nth(1).locator("> summary").click()
    assert await opened_groups.all_inner_texts() == ["App servers"]
    await groups.nth(1).locator(".section > summary", has_text="Conversations").click()
    await groups.nth(1).locator(".section > summary", has_text="Withdrawals").click()
    await expect(page.locator("#contents details.section[open] > summary")).to_have_text(["Withdrawals"])
    await expect(
        page.locator("#reference").get_by_role("heading", name="Withdrawals", exact=True)
    ).to_be_in_viewport()


@pytest.mark.parametrize(
    ("query", "method", "path"),
    [
        ("conversation", "POST", "/bp/ai/conversation"),
        ("login", "POST", "/bp/user/login"),
        ("refund", "POST", "/admin/api/users/{app}/{user_id}/orders/{order}/refund"),
        ("tts", "POST", "/bp/ai/audio/tts"),
        ("export a user", "POST", "/admin/api/users/{app}/{user_id}/export"),
    ],
)
async def test_the_search_finds_the_operation_first_and_leads_to_it(
    opened: Open, query: str, method: str, path: str
) -> None:
    page = await opened()
    await page.keyboard.press("/")
    await page.get_by_role("combobox", name="Search the API").fill(query)
    await expect(page.get_by_role("option").first.locator("code")).to_have_text(f"{method} {path}")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await expect(section(page, f"{method}{path}").get_by_role("heading").first).to_be_in_viewport(
        timeout=_DRAWN_WITHIN_MS
    )


async def test_the_search_works_with_the_keyboard(opened: Open) -> None:
    page = await opened()
    await page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search the API")
    await expect(field).to_be_focused()
    await field.fill("conversation")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("option", selected=True)).to_have_count(1)
    await expect(page.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")
    await check_accessibility(page)
    await field.fill("no such thing")
    await expect(page.get_by_role("dialog").get_by_role("status")).to_have_text("No operation has these words.")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await page.keyboard.press("/")
    await expect(field).to_have_value("")


@pytest.mark.parametrize("beginning", ["#", "#tag/ai/", "#tag/renamed/"])
async def test_a_link_leads_to_its_operation_and_moves_the_contents(opened: Open, beginning: str) -> None:
    page = await opened(f"{beginning}{CONVERSATION}")
    await is_at(page, CONVERSATION, "Take a turn in a conversation", group="Apps")
    await page.evaluate("hash => { location.hash = hash; }", "#POST/bp/server/user/{user_id}/withdraw/")
    await is_at(page, "POST/bp/server/user/{user_id}/withdraw/", "Start a withdrawal", group="App servers")


async def is_at(page: Page, anchor: str, title: str, *, group: str) -> None:
    """Wait until the operation with this anchor is in view, and the contents show it."""
    await expect(section(page, anchor).get_by_role("heading").first).to_be_in_viewport(timeout=_DRAWN_WITHIN_MS)
    await expect(page.locator("#contents details.group[open] > summary")).to_have_text(group)
    current = page.locator("#contents [aria-current]")
    await expect(current).to_contain_text(title)
    await expect(current).to_be_in_viewport()


def section(page: Page, anchor: str) -> Any:
    return page.locator(f"#reference section[id$='/{anchor}']")


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
async def test_no_name_is_broken_and_nothing_is_wider_than_the_page(opened: Open, screen: dict[str, Any]) -> None:
    page = await opened(f"#{CONVERSATION}", **screen)
    names = section(page, CONVERSATION).get_by_text("assistant_output_content_segment")
    await expect(names.first).to_be_visible(timeout=_DRAWN_WITHIN_MS)
    assert await page.evaluate(_BROKEN_CODES) == []
    assert await page.evaluate(_CUT_CODES) == []
    assert await page.evaluate(_CUT_LINES) == []
    assert await page.evaluate("() => document.documentElement.scrollWidth") <= screen["viewport"]["width"]
    page = await opened(**screen)
    await expect(page.get_by_text("X-Service-Session-Token").first).to_be_visible()
    assert await page.evaluate(_BROKEN_CODES) == []


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
async def test_an_operation_lists_its_events_and_errors_below_its_body(
    opened: Open, screen: dict[str, Any]
) -> None:
    page = await opened(f"#{CONVERSATION}", **screen)
    shown = section(page, CONVERSATION)
    await expect(shown.locator(".operation-details .stream-lists")).to_be_visible(timeout=_DRAWN_WITHIN_MS)
    headings = [text.split()[0] for text in await shown.locator("h4").all_inner_texts()]
    assert headings == ["Headers", "Body", "Events", "Errors", "Responses"]
    card = shown.locator(".response-card")
    await card.locator(".tab").first.scroll_into_view_if_needed()
    assert await card.locator(".tab").count() > 8
    assert await card.evaluate(_COVERED_CODES) == []
    assert await shown.evaluate_all(_TITLE_CASE) == []


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
async def test_axe_finds_nothing_serious(opened: Open, screen: dict[str, Any]) -> None:
    page = await opened(f"#{USER}", **screen)
    await expect(section(page, USER)).to_be_visible(timeout=_DRAWN_WITHIN_MS)
    await check_accessibility(page)
    await keep_picture(page, f"docs-{screen['viewport']['width']}-light")


async def test_on_a_phone_the_contents_open_over_the_page(opened: Open) -> None:
    page = await opened(**PHONE)
    await expect(page.locator("#contents")).to_be_hidden()
    await page.get_by_role("button", name="Contents").tap()
    await page.locator("#contents .group[open] .section > summary", has_text="Speech").tap()
    await page.locator("#contents").get_by_role("link", name="Synthesize speech").tap()
    await expect(page.locator("#contents")).to_be_hidden()
    await expect(section(page, "POST/bp/ai/audio/tts").get_by_role("heading").first).to_be_in_viewport(
        timeout=_DRAWN_WITHIN_MS
    )


async def test_requests_are_sent_with_a_session_after_one_click(opened: Open, server: Server) -> None:
    page = await opened(f"#{USER}", **DESK, permissions=["clipboard-read", "clipboard-write"])
    await expect(page.get_by_text("Parley", exact=True).first).to_be_visible()
    await page.get_by_role("button", name="Use a session").click()
    notice = page.locator(".tools").get_by_role("status")
    await expect(notice).to_contain_text("as a new user")
    box = await notice.bounding_box()
    assert box["y"] > DESK["viewport"]["height"] * 0.8  # Above are the tools of the operation.
    await keep_picture(page, "docs-session-1280")
    await notice.get_by_role("button", name="export SESSION").click()
    await expect(notice).to_contain_text("Copied")
    copied = await page.evaluate("navigator.clipboard.readText()")
    session = {"X-Service-Session-Token": copied.removeprefix("export SESSION=")}
    async with server.http.get(f"{server.url}/bp/user/me", headers=session) as known:
        assert known.status == 200
    await section(page, USER).get_by_role("button", name="Test request").click()
    async with page.expect_response(f"{server.url}/bp/user/me") as sent:
        await page.get_by_role("button", name="Send").first.click()
    response = await sent.value
    assert response.status == 200
    assert (await response.json())["user"]["is_new_user"] is False


async def test_a_phone_has_no_form_for_requests_and_no_session_for_it(opened: Open) -> None:
    page = await opened(f"#{USER}", **PHONE)
    await expect(section(page, USER)).to_be_visible(timeout=_DRAWN_WITHIN_MS)
    await expect(page.get_by_role("button", name="Test request")).to_have_count(0)
    await expect(page.locator(".tools .find")).to_be_visible()
    await expect(page.locator(".tools .session")).to_be_hidden()


async def test_a_request_without_a_session_shows_no_token(opened: Open) -> None:
    page = await opened(f"#{USER}")
    await section(page, USER).get_by_role("button", name="Test request").click()
    await expect(page.get_by_role("button", name="Send").first).to_be_visible()
    fields = page.locator("[placeholder^=QUxM]")
    await expect(fields.first).to_be_visible()
    assert set(await fields.evaluate_all(PLACEHOLDER_COLORS)) == {"rgba(0, 0, 0, 0)"}
    await expect(page.locator(".ascii-art")).to_be_hidden()
    dialog = await page.get_by_role("dialog").inner_text()
    assert "Send request" in dialog
    assert re.findall(r"\b[A-Z][a-z]+ [A-Z][a-z]+", dialog) == [], "no label is in title case"
    await keep_picture(page, "docs-test")
