"""The page with the button that proves an email address, and its way to the page of the app."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, expect

from storage.configs.kinds.email import EMAIL
from storage.operators.audit import COMMAND
from tests.app.accounts.email.mailbox import Mailbox, link_in, new_address, path_of, session_of
from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.running.servers import Server

SCREENS = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


@pytest_asyncio.fixture(loop_scope="session")
async def welcome() -> AsyncIterator[str]:
    """The URL of the page of an app, at another origin."""

    async def show(_request: web.Request) -> web.Response:
        return web.Response(
            text="<!doctype html><title>Talk</title><link rel=icon href=data:,><h1>Welcome to Talk</h1>",
            content_type="text/html",
        )

    app = web.Application()
    app.router.add_get("/welcome", show)
    async with TestServer(app) as running:
        yield str(running.make_url("/welcome"))


@pytest_asyncio.fixture(loop_scope="session")
async def box(sandbox_server: Server, welcome: str) -> AsyncIterator[Mailbox]:
    """The mailbox of an app whose links lead to its own page."""
    configs = sandbox_server.services.configs
    before = configs.singleton(EMAIL, "default").model_dump(mode="json", by_alias=True)
    value = {
        "mail_accounts": ["inbox"],
        "code_login": True,
        "activation": True,
        "color": "#7c3aed",
        "verify_redirect_url": welcome,
    }
    await configs.put("default", "email", "default", value, author="test", origin=COMMAND)
    yield Mailbox(sandbox_server)
    await configs.put("default", "email", "default", before, author="test", origin=COMMAND)


async def opened(page: Page, box: Mailbox, *, scanned: bool) -> dict[str, str]:
    """Sign up, and open the link of the email. Return the header of the session."""
    address = new_address()
    session = session_of(await box.sign_up(address))
    link = link_in(await box.mail(address))
    if scanned:
        async with box.server.http.get(link, allow_redirects=False) as response:
            assert response.status == 301
    await page.goto(link)
    await expect(page.get_by_role("heading", name="Confirm your email address")).to_be_visible()
    await expect(page.get_by_text(address)).to_be_visible()
    return session


@pytest.mark.parametrize("scanned", [False, True], ids=["first", "scanned"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_the_button_leads_to_the_page_of_the_app(
    chromium: Browser, box: Mailbox, welcome: str, screen: str, *, scanned: bool
) -> None:
    context = await chromium.new_context(viewport=SCREENS[screen], locale="en-US", java_script_enabled=False)
    faults = PageFaults()
    faults.watch(context, box.server.url.partition("://")[2])
    faults.hosts.add(welcome.partition("://")[2].partition("/")[0])
    try:
        page = await context.new_page()
        session = await opened(page, box, scanned=scanned)
        await keep_picture(page, f"account-confirm-{'scanned-' if scanned else ''}{screen}")
        button = page.get_by_role("button", name="Confirm my address")
        place = await button.bounding_box()
        assert place is not None
        assert place["height"] >= 44
        assert place["y"] + place["height"] <= SCREENS[screen]["height"]
        assert (await box.me(session))[1]["user"]["email"]["verified"] is scanned
        await button.click()
        await expect(page.get_by_role("heading", name="Welcome to Talk")).to_be_visible()
        assert page.url == f"{welcome}?verified=true"
        assert (await box.me(session))[0] == (400 if scanned else 200)
        faults.verify()
    finally:
        await context.close()


async def test_the_page_is_accessible(chromium: Browser, box: Mailbox) -> None:
    context = await chromium.new_context(viewport=SCREENS["phone"], locale="de-DE")
    try:
        page = await context.new_page()
        address = new_address()
        await box.sign_up(address)
        link = link_in(await box.mail(address))
        await box.get(path_of(link), allow_redirects=False)
        await page.goto(link)
        await check_accessibility(page)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="Meine Adresse bestätigen")).to_be_focused()
        await keep_picture(page, "account-confirm-german")
    finally:
        await context.close()
