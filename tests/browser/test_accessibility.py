"""The page can be used with a keyboard, a screen reader or a phone, and in dark mode."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Visit
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
DESK = {"viewport": {"width": 1280, "height": 800}}
SCREENS: dict[str, dict[str, Any]] = {"desk": DESK, "phone": PHONE}
MIN_TARGET_PX = 24
MIN_MARGIN_PX = 8
MAX_STEPS = 40
_FOCUSED = """() => {
    const focused = document.activeElement;
    const name = focused.getAttribute("aria-label") ?? focused.labels?.[0]?.innerText ?? focused.innerText;
    const seen = [focused, focused.closest("form")].some((part) => {
        if (!part) return false;
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(part);
        return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
    });
    return { name: name.trim(), seen, body: focused === document.body };
}"""

_HIDDEN = """async (alert) => {
    await new Promise((done) => setTimeout(() => requestAnimationFrame(done)));
    const hidden = [];
    for (const part of [alert, ...alert.querySelectorAll("*")]) {
        const { left, right, top, bottom } = part.getBoundingClientRect();
        for (const [x, y] of [[left + 6, top + 2], [right - 6, bottom - 2]]) {
            const seen = document.elementFromPoint(x, y);
            if (!alert.contains(seen)) hidden.push(`${part.tagName} at ${x} ${y}`);
        }
    }
    return hidden;
}"""
"""Returns the corners of an alert and of its parts that are outside the screen or covered."""

_SEEN = """(word) => {
    const { left, top, width, height } = word.getBoundingClientRect();
    const on = (x) => word.contains(document.elementFromPoint(x, top + height / 2));
    return width > 0 && on(left + 2) && on(left + width - 2);
}"""
"""Whether a word is on the screen, not covered and not clipped."""


async def tab_to(talk: TalkPage, name: str) -> None:
    """Press Tab until the control with this name has the focus. Every focus must be visible."""
    steps: list[str] = []
    while len(steps) < MAX_STEPS:
        await talk.page.keyboard.press("Tab")
        focused = await talk.page.evaluate(_FOCUSED)
        assert focused["body"] or focused["seen"], f"{focused['name']} has no visible focus"
        steps.append(focused["name"])
        if focused["name"].startswith(name):
            return
    pytest.fail(f"{name} is not reached: {steps}")


@pytest.mark.parametrize("screen", SCREENS)
async def test_axe_finds_nothing_serious(visit: Visit, screen: str) -> None:
    talk = await visit(**SCREENS[screen])
    await talk.open("scripted-text")
    await check_accessibility(talk.page)
    await talk.say("Hello")
    await talk.answered()
    await talk.open_details()
    await check_accessibility(talk.page)
    await talk.close_details()
    await keep_picture(talk.page, f"talk-{screen}")
    async with talk.settings():
        await talk.page.get_by_role("checkbox", name="fall back").check()
        await check_accessibility(talk.page)
        await keep_picture(talk.page, f"talk-settings-{screen}")
    await talk.tab("Pronunciation").click()
    await check_accessibility(talk.page)


async def test_the_page_fits_the_width_of_a_phone(visit: Visit) -> None:
    talk = await visit(**PHONE)
    await talk.open("scripted-text")
    await talk.say("Repeat 60 words")
    await talk.answered()
    for tab in ("Conversation", "Pronunciation"):
        await talk.tab(tab).click()
        assert await talk.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
        for button in await talk.page.get_by_role("button").all():
            box = await button.bounding_box()
            if box:
                assert min(box["width"], box["height"]) >= MIN_TARGET_PX, await button.inner_text()


async def test_the_text_has_a_margin_at_any_width(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    for width in (320, 500, 640, 800, 1_000, 1_300):
        await talk.page.set_viewport_size({"width": width, "height": 800})
        for part in (talk.page.locator(".page-logo"), talk.message, talk.button("Send")):
            box = await part.bounding_box()
            assert box["x"] >= MIN_MARGIN_PX, width
            assert box["x"] + box["width"] <= width - MIN_MARGIN_PX, width


async def test_the_page_needs_no_scrolling(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    await talk.say("Repeat 60 words")
    await talk.answered()
    for width, height in ((1_280, 800), (390, 844)):
        await talk.page.set_viewport_size({"width": width, "height": height})
        assert await talk.page.evaluate("() => document.documentElement.scrollHeight") <= height, width
        box = await talk.button("Look inside").bounding_box()
        assert box["y"] + box["height"] <= height, width


async def test_the_content_of_events_is_on_the_screen_of_a_phone(visit: Visit) -> None:
    talk = await visit(**PHONE)
    await talk.open("scripted-text")
    await talk.say("Hello")
    await talk.answered()
    await talk.open_details()
    for content in await talk.page.get_by_role("table", name="Events").locator("td:last-child").all():
        box = await content.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["viewport"]["width"]


async def test_the_controls_are_on_the_first_screen(talk: TalkPage) -> None:
    for width, height in ((1_280, 800), (1_280, 560), (1_030, 800), (390, 844), (360, 740)):
        await talk.page.set_viewport_size({"width": width, "height": height})
        await talk.open()
        assert await talk.page.evaluate("document.documentElement.scrollWidth") == width
        for control in (talk.message, talk.button("Send"), talk.hold, talk.hands_free):
            box = await control.bounding_box()
            assert box["y"] >= 0, (width, height)
            assert box["y"] + box["height"] <= height, (width, height)


@pytest.mark.parametrize("width", [1_280, 390, 360])
async def test_the_words_of_tabs_and_tools_are_seen(visit: Visit, width: int) -> None:
    talk = await visit(viewport={"width": width, "height": 740}, has_touch=width < DESK["viewport"]["width"])
    await talk.open()
    await expect(talk.page.get_by_role("banner").get_by_role("tab")).to_have_count(0)
    for control in (
        talk.tab("Conversation"),
        talk.tab("Pronunciation"),
        talk.button("Look inside"),
        talk.hands_free,
    ):
        assert await control.locator("span").evaluate(_SEEN), await control.inner_text()
    assert await talk.page.evaluate("document.documentElement.scrollWidth") == width
    await keep_picture(talk.page, f"talk-words-{width}")


async def test_the_button_can_be_held_by_touch(visit: Visit, fixed_strategy, duration_recognition: str) -> None:
    talk = await visit(**PHONE)
    await talk.open(await fixed_strategy("Hello", recognition=duration_recognition))
    await talk.hold.scroll_into_view_if_needed()
    box = await talk.hold.bounding_box()
    finger = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    touch = await talk.page.context.new_cdp_session(talk.page)
    await touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
    await talk.some_speech_recorded()
    await touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    await talk.duration_recognized()
    await talk.answered()


async def test_the_page_links_to_the_reference(talk: TalkPage) -> None:
    await talk.open()
    await talk.page.get_by_role("link", name="API reference").click()
    await talk.page.wait_for_url("**/docs", wait_until="commit")  # The reference takes seconds to draw.


async def test_the_page_links_to_the_console(talk: TalkPage, page_faults: PageFaults) -> None:
    await talk.open()
    page_faults.expected.append("status of 401")  # The console asks who is signed in.
    async with talk.page.expect_event("console", lambda message: "401" in message.text):
        await talk.page.get_by_role("link", name="Console").click()
    assert talk.page.url.endswith("/console")


async def test_every_control_works_with_the_keyboard(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    keyboard = talk.page.keyboard
    await talk.open()
    await tab_to(talk, "Settings")
    await keyboard.press("Enter")
    await tab_to(talk, "Strategy")
    await keyboard.type(controlled_strategy)
    await keyboard.press("Escape")
    await tab_to(talk, "Message")
    await keyboard.type("Tell me a story")
    await keyboard.press("Enter")
    controlled_vendor.send("Once upon ")
    await expect(talk.answer).to_contain_text("Once upon")
    await tab_to(talk, "Interrupt")
    await keyboard.press("Enter")
    await talk.answered("interrupted")
    await tab_to(talk, "Hold to talk")
    await keyboard.down("Space")
    await talk.some_speech_recorded()
    await keyboard.up("Space")
    await talk.duration_recognized()
    controlled_vendor.send("Tokyo.")
    controlled_vendor.finish()
    assert await talk.answered() == ["Tokyo."]
    await tab_to(talk, "Look inside")
    if await talk.button("Look inside").get_attribute("aria-expanded") == "false":
        await keyboard.press("Enter")
    await expect(talk.page.get_by_role("figure", name="Timeline")).to_be_visible()


async def test_the_button_can_be_clicked_instead_of_held(
    talk: TalkPage, fixed_strategy, duration_recognition: str
) -> None:
    """A screen reader clicks without pointer or key events."""
    await talk.open(await fixed_strategy("Hello", recognition=duration_recognition))
    await talk.hold.evaluate("(button) => button.click()")
    await talk.some_speech_recorded()
    await talk.hold.evaluate("(button) => button.click()")
    await talk.duration_recognized()
    await talk.answered()


async def test_arrow_keys_change_the_tab(talk: TalkPage) -> None:
    await talk.open()
    await talk.tab("Conversation").focus()
    await talk.page.keyboard.press("ArrowRight")
    await expect(talk.tab("Pronunciation")).to_be_focused()
    await talk.page.keyboard.press("Enter")
    await expect(talk.tab("Pronunciation")).to_have_attribute("aria-selected", "true")
    await expect(talk.page.get_by_role("textbox", name="Text to read")).to_be_visible()
    await expect(talk.message).to_be_hidden()


async def test_alerts_fit_the_screen_of_a_phone(visit: Visit, put, account: str) -> None:
    await put("conversation", "broken", {"chat": {"account": account, "model": "refuse:503"}})
    talk = await visit(**PHONE)
    await talk.open("broken")
    await talk.say("Tell me a story")
    await expect(talk.alert).to_be_visible()
    await expect(talk.status).to_contain_text("Ready")
    for height in (740, 640):
        await talk.page.set_viewport_size({"width": 360, "height": height})
        assert await talk.alert.evaluate(_HIDDEN) == [], height
    await keep_picture(talk.page, "talk-alert")
    await talk.button("Close this message").click()
    await expect(talk.alert).to_have_count(0)
