"""The console: streams of all processes, one of them while it runs, and what has ended."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse
from playwright.async_api import Browser, Page, expect

from storage.processes.heartbeats import Heartbeat
from streams.wire.codec import dumps
from streams.wire.ids import new_id
from tests.browser.console.console_page import SCRIPT, check, viewing
from tests.browser.controlled_vendor import ControlledVendor
from tests.browser.page_faults import PageFaults
from tests.running.another_server import another_server
from tests.running.servers import Server


@asynccontextmanager
async def talking(server: Server, token: str, strategy: str) -> AsyncIterator[ClientResponse]:
    params = {
        "strategies": [strategy],
        "language_code": "en-US",
        "target_language_code": "en-US",
        "type": "text",
        "conversation_id": "",
    }
    async with server.http.post(
        f"{server.url}/bp/ai/conversation",
        data=dumps(params) + b"Hello",
        headers={"X-Service-Session-Token": token},
    ) as response:
        assert response.status == 200
        yield response


@pytest.mark.parametrize("width", [1_280, 390])
async def test_a_stream_of_another_process_is_found_watched_and_cancelled(
    page: Page, server: Server, controlled_strategy: str, controlled_vendor: ControlledVendor, width: int
) -> None:
    uid, token = await server.login()
    async with another_server(server.services.settings) as other, talking(other, token, controlled_strategy):
        controlled_vendor.send("Once ", "upon ", SCRIPT)
        await page.set_viewport_size({"width": width, "height": 844})
        await page.goto(f"{server.url}/console#/streams")
        await expect(page.get_by_text("1 running in 2 processes")).to_be_visible()
        table = page.get_by_role("table", name="Running")
        await expect(table).to_contain_text(controlled_strategy)
        if width == 1_280:
            await check(page, "streams")
        if width == 390:
            await page.get_by_role("button", name="Filter").click()
        await page.get_by_label("User", exact=True).fill(uid)
        await page.get_by_label("User", exact=True).press("Enter")
        await expect(page).to_have_url(re.compile(f"user_id={uid}"))
        await table.get_by_role("link", name="Conversation").click()
        await expect(page.get_by_role("heading", name="Conversation")).to_be_visible()
        log = page.get_by_role("list", name="Events")
        await expect(log).to_contain_text(SCRIPT)
        await expect(page.get_by_role("table", name="Attempts")).to_contain_text("Running")
        controlled_vendor.send("a time")
        await expect(log).to_contain_text("a time")
        if width == 1_280:
            await check(page, "stream-live")
        await page.get_by_role("button", name="Cancel stream").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("button", name="Cancel stream")).to_be_disabled()
        await dialog.get_by_label("Reason").fill("It repeats itself")
        await dialog.get_by_role("button", name="Cancel stream").click()
        await expect(log).to_contain_text("end")
        await expect(page.get_by_role("table", name="Attempts")).to_contain_text("Canceled")
        await page.get_by_role("link", name="Streams", exact=True).last.click()
        await page.get_by_role("link", name="Ended").click()
        if width == 390:
            await page.get_by_role("button", name="Filter").click()
        await page.get_by_label("User", exact=True).fill(uid)
        await page.get_by_label("User", exact=True).press("Enter")
        await expect(page.get_by_role("table", name="Ended")).to_contain_text(controlled_strategy)
        await page.goto(f"{server.url}/console#/users/default/{uid}")
        await page.get_by_role("link", name="Ended streams").click()
        await expect(page.get_by_role("table", name="Ended")).to_contain_text(controlled_strategy)
        await check(page, "streams-ended")


async def test_a_process_that_does_not_answer_is_named(page: Page, server: Server) -> None:
    services = server.services
    gone = Heartbeat(services.valkey, services.database, new_id(), dict)
    await gone.beat()
    await page.goto(f"{server.url}/console#/streams")
    await expect(page.get_by_text("1 process did not answer")).to_be_visible()
    await check(page, "streams-silent")
    await gone.stop()
    await expect(page.get_by_text("1 process did not answer")).to_be_hidden()
    await expect(page.get_by_text("No streams are running.")).to_be_visible()


async def test_a_viewer_watches_without_what_is_said(
    chromium: Browser, server: Server, page_faults: PageFaults, fixed_strategy: Callable[..., Any]
) -> None:
    _, token = await server.login()
    async with talking(server, token, await fixed_strategy("A secret")) as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        await response.read()
    async with viewing(chromium, server, page_faults) as page:
        await page.goto(f"{server.url}/console#/streams/default/{stream_id}")
        log = page.get_by_role("list", name="Events")
        await expect(log).to_contain_text("assistant_output_chunk")
        await expect(page.get_by_text("What is said in it needs the role admin.")).to_be_visible()
        assert "secret" not in await log.inner_text()
        await expect(page.get_by_role("table", name="Attempts")).to_contain_text("Answered")
        await expect(page.get_by_role("button", name="Cancel stream")).to_have_count(0)
        await expect(page.get_by_role("table", name="Attempts")).to_contain_text(" in, ")
        await expect(page.get_by_role("table", name="Attempts")).to_contain_text("$0")
        await check(page, "stream-viewer")
        page_faults.expected.append("404")
        await page.goto(f"{server.url}/console#/streams/default/{new_id()}")
        await expect(page.get_by_text("This stream does not run, and nothing is stored of it.")).to_be_visible()
