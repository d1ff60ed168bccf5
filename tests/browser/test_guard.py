"""That what a page must not do would be seen."""

import pytest
from playwright.async_api import Error

from tests.browser.guard import Guard
from tests.browser.talking import Talking


async def test_errors_and_warnings_of_a_page_are_recorded(talk: Talking, guard: Guard) -> None:
    guard.expected.append("never")
    with pytest.raises(AssertionError, match="no error like never"):
        guard.verify()
    guard.expected.clear()
    await talk.page.evaluate("() => console.error('all is lost')")
    with pytest.raises(AssertionError, match="all is lost"):
        guard.verify()
    guard.expected.append("all is lost")
    guard.verify()
    async with talk.page.expect_event("pageerror"):
        await talk.page.evaluate("() => setTimeout(() => { throw new Error('dropped') })")
    with pytest.raises(AssertionError, match="dropped"):
        guard.verify()
    guard.expected.append("dropped")


async def test_a_request_to_another_host_is_recorded_and_blocked(talk: Talking, guard: Guard) -> None:
    for host in ("elsewhere.example", "192.0.2.1"):
        with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
            await talk.page.goto(f"http://{host}/")
        with pytest.raises(AssertionError, match=host):
            guard.verify()
        guard.hosts.add(host)  # The browser may try again.
        guard.strangers.clear()


async def test_inline_scripts_are_blocked(talk: Talking, guard: Guard) -> None:
    await talk.open()
    guard.expected.append("Content Security Policy")
    with pytest.raises(Error):
        await talk.page.add_script_tag(content="window.written = true")
    assert await talk.page.evaluate("() => window.written") is None
