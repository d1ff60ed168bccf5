"""The inboxes of a development server, the emails in them, and the pages where there is nothing."""

import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from storage.configs.kinds.email import EMAIL
from storage.operators.audit import COMMAND
from tests.app.accounts.email.mailbox import Mailbox, new_address, session_of
from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.running.servers import Server

SCREENS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
COLORS = {"dark": "#12372a", "light": "#ffd400"}
"""Colours of apps with which text or buttons are hard to see in one of the schemes."""


@pytest_asyncio.fixture(loop_scope="session")
async def box(sandbox_server: Server) -> AsyncIterator[Mailbox]:
    configs = sandbox_server.services.configs
    before = configs.singleton(EMAIL, "default").model_dump(mode="json", by_alias=True)
    opened = Mailbox(sandbox_server)
    await opened.configure(code_login=True, activation=True, color="#7c3aed")
    yield opened
    await configs.put("default", "email", "default", before, author="test", origin=COMMAND)


@pytest.fixture
def faults() -> PageFaults:
    return PageFaults()


@pytest_asyncio.fixture(loop_scope="session", params=SCREENS)
async def context(
    request: pytest.FixtureRequest, chromium: Browser, box: Mailbox, faults: PageFaults
) -> AsyncIterator[BrowserContext]:
    opened = await chromium.new_context(
        **SCREENS[request.param], locale="en-US", permissions=["clipboard-read", "clipboard-write"]
    )
    faults.watch(opened, box.server.url.partition("://")[2])
    yield opened
    await opened.close()
    faults.verify()


async def check(page: Page, name: str) -> None:
    """Check that a page is accessible and fits its screen, and keep pictures of it in both schemes."""
    await check_accessibility(page)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    width = page.viewport_size["width"] if page.viewport_size else 0
    for scheme in ("dark", "light"):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        await keep_picture(page, f"{name}-{width}-{scheme}")


async def test_a_text_message_appears_and_its_code_is_copied(context: BrowserContext, box: Mailbox) -> None:
    page = await context.new_page()
    number = f"+49151{int(uuid4()) % 10**7:07}"
    await page.goto(f"{box.server.url}/dev/sms?to=%2B{number[1:]}")
    await expect(page.get_by_text("There are no text messages to this number yet.")).to_be_visible()
    await check(page, "sms-empty")
    await page.evaluate("window.isTheSame = true")
    for nth in (1, 2):
        assert (await box.post("send_phone_verify_code", {"phone_number": number}))[0] == 200
        await expect(page.get_by_role("listitem")).to_have_count(nth)
    assert await page.evaluate("window.isTheSame")
    newest = page.get_by_role("listitem").first
    await newest.get_by_role("button", name="Copy").click()
    await expect(newest.get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    shown = await newest.locator("time").evaluate("(time) => [time.title, time.textContent]")
    assert re.fullmatch(r"[\d-]+ [\d:]+ UTC", shown[0])
    assert re.search(r", [1-9]\d?:\d\d [AP]M$", shown[1])
    messages = (await box.get("/dev/sms", params={"to": number}))[1]["messages"]
    assert copied == messages[0]["code"]
    await check(page, "sms")


async def test_an_email_is_read_in_each_form_and_its_link_works(context: BrowserContext, box: Mailbox) -> None:
    address = new_address()
    await box.sign_up(address)
    await box.mail(address)
    page = await context.new_page()
    await page.goto(f"{box.server.url}/dev/mail?to={address}")
    if page.viewport_size and page.viewport_size["width"] < 600:
        await check(page, "emails-list")
        await page.get_by_role("link", name="Confirm your email address").click()
    frame = page.frame_locator("iframe")
    button = frame.get_by_role("link", name="Confirm my address")
    await expect(button).to_be_visible()
    below = await page.locator("iframe").evaluate("(frame) => innerHeight - frame.getBoundingClientRect().bottom")
    assert 0 < below < 48
    assert await page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
    await check(page, "emails-html")
    await page.get_by_text("Text", exact=True).click()
    await expect(page.locator("[data-part=text]").get_by_text("Someone entered")).to_be_visible()
    await expect(page.locator("iframe")).to_be_hidden()
    await check(page, "emails-text")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_text("Content-Type: multipart/alternative")).to_be_visible()
    await check(page, "emails-source")
    await page.get_by_text("HTML", exact=True).click()
    async with context.expect_page() as opened:
        await button.click()
    await expect((await opened.value).get_by_role("heading", name="Confirm your email address")).to_be_visible()


@pytest.mark.parametrize("scheme", COLORS)
async def test_emails_can_be_read_in_both_schemes_and_at_any_width(
    chromium: Browser, box: Mailbox, scheme: str
) -> None:
    await box.configure(code_login=True, activation=True, color=COLORS[scheme])
    address, new = new_address(), new_address()
    session = session_of(await box.sign_up(address))
    mails = {"verify": await box.mail(address)}
    await box.post("email/forgot_password", {"email": address, "platform": "ios"})
    mails["reset"] = await box.mail(address, nth=2)
    await box.post("me/email", {"email": new, "platform": "ios"}, "PUT", **session)
    mails["notice"] = await box.mail(address, nth=3)
    await box.code(new, nth=2)
    mails["code"] = await box.mail(new, nth=2)
    page = await chromium.new_page(locale="en-US")
    try:
        for purpose, mail in mails.items():
            await page.set_content(mail["html"])
            await check_accessibility(page)
            for width in (390, 600):
                await page.set_viewport_size({"width": width, "height": 844})
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                await keep_picture(page, f"email-{purpose}-{width}-{scheme}")
    finally:
        await page.close()


@pytest.mark.parametrize("path", ["nothing", "files/x?e=1&s=x", "bp/user/login"])
async def test_a_page_where_there_is_nothing_leads_to_those_of_the_server(
    context: BrowserContext, box: Mailbox, faults: PageFaults, path: str
) -> None:
    faults.expected.append("the server responded with a status of 40[45]")
    page = await context.new_page()
    response = await page.goto(f"{box.server.url}/{path}")
    assert response is not None
    assert response.status in {404, 405}
    await check(page, f"error-{path.partition('/')[0]}")
    await page.get_by_role("main").get_by_role("link", name="Emails").click()
    await expect(page.get_by_role("heading", name="Emails")).to_be_visible()
