"""`PageFaults` detects errors and foreign requests of a page."""

import pytest
from playwright.async_api import Error

from tests.browser.page_faults import PageFaults
from tests.browser.talk_page import TalkPage


async def test_errors_and_warnings_of_a_page_are_recorded(talk: TalkPage, page_faults: PageFaults) -> None:
    page_faults.expected.append("never")
    with pytest.raises(AssertionError, match="no error like never"):
        page_faults.verify()
    page_faults.expected.clear()
    await talk.page.evaluate("() => console.error('all is lost')")
    with pytest.raises(AssertionError, match="all is lost"):
        page_faults.verify()
    page_faults.expected.append("all is lost")
    page_faults.verify()
    async with talk.page.expect_event("pageerror"):
        await talk.page.evaluate("() => setTimeout(() => { throw new Error('dropped') })")
    with pytest.raises(AssertionError, match="dropped"):
        page_faults.verify()
    page_faults.expected.append("dropped")


async def test_a_request_to_another_host_is_recorded_and_blocked(talk: TalkPage, page_faults: PageFaults) -> None:
    for host in ("elsewhere.example", "192.0.2.1"):
        with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
            await talk.page.goto(f"http://{host}/")
        with pytest.raises(AssertionError, match=host):
            page_faults.verify()
        page_faults.hosts.add(host)  # The browser may try again.
        page_faults.foreign_requests.clear()


async def test_inline_scripts_are_blocked(talk: TalkPage, page_faults: PageFaults) -> None:
    await talk.open()
    page_faults.expected.append("Content Security Policy")
    with pytest.raises(Error):
        await talk.page.add_script_tag(content="window.written = true")
    assert await talk.page.evaluate("() => window.written") is None
