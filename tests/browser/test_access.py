"""The page for all who use it: by keyboard, by ear, on a phone, in the dark."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.accessibility import nothing_serious
from tests.browser.conftest import Visit
from tests.browser.talking import Talking

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
DESK = {"viewport": {"width": 1280, "height": 800}}
LEAST_TARGET_PX = 24
LEAST_MARGIN_PX = 8
MOST_STEPS = 40
_FOCUSED = """() => {
    const focused = document.activeElement;
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(focused);
    const name = focused.getAttribute("aria-label") ?? focused.labels?.[0]?.innerText ?? focused.innerText;
    const seen = (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
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
"""Which corners of a part of it are outside the screen, or behind something else."""


async def tab_to(talk: Talking, name: str) -> None:
    """Press Tab until the control of that name has the focus, which must be seen on the way."""
    steps: list[str] = []
    while len(steps) < MOST_STEPS:
        await talk.page.keyboard.press("Tab")
        focused = await talk.page.evaluate(_FOCUSED)
        assert focused["body"] or focused["seen"], f"the focus of {focused['name']} is not seen"
        steps.append(focused["name"])
        if focused["name"].startswith(name):
            return
    pytest.fail(f"{name} is not reached: {steps}")


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
async def test_axe_finds_nothing_serious(visit: Visit, screen: dict[str, Any]) -> None:
    talk = await visit(**screen)
    await talk.open("scripted-text")
    await nothing_serious(talk)
    await talk.say("Hello")
    await talk.answered()
    await talk.look_inside()
    await nothing_serious(talk)
    await talk.tab("Pronunciation").click()
    await nothing_serious(talk)


async def test_a_phone_is_wide_enough(visit: Visit) -> None:
    talk = await visit(**PHONE)
    await talk.open("scripted-text")
    await talk.say("Repeat 60 words")
    await talk.answered()
    await talk.look_inside()
    for tab in ("Conversation", "Pronunciation"):
        await talk.tab(tab).click()
        assert await talk.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
        for button in await talk.page.get_by_role("button").all():
            box = await button.bounding_box()
            if box:
                assert min(box["width"], box["height"]) >= LEAST_TARGET_PX, await button.inner_text()


async def test_the_text_keeps_off_the_edges_at_any_width(talk: Talking) -> None:
    await talk.open("scripted-text")
    for width in (320, 500, 640, 800, 1_000, 1_300):
        await talk.page.set_viewport_size({"width": width, "height": 800})
        for part in (talk.page.get_by_role("heading", level=1), talk.message, talk.button("Send")):
            box = await part.bounding_box()
            assert box["x"] >= LEAST_MARGIN_PX, width
            assert box["x"] + box["width"] <= width - LEAST_MARGIN_PX, width


@pytest.mark.parametrize(("width", "height"), [(1_280, 800), (1_280, 560), (390, 844), (360, 740)])
async def test_the_controls_are_on_the_first_screen(visit: Visit, width: int, height: int) -> None:
    talk = await visit(viewport={"width": width, "height": height})
    await talk.open()
    for control in (talk.message, talk.button("Send"), talk.hold, talk.button("Interrupt")):
        box = await control.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height


async def test_a_finger_may_hold_the_button(visit: Visit, say, ear: str) -> None:
    talk = await visit(**PHONE)
    await talk.open(await say("Hello", recognition=ear))
    await talk.hold.scroll_into_view_if_needed()
    box = await talk.hold.bounding_box()
    finger = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    touch = await talk.page.context.new_cdp_session(talk.page)
    await touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
    await talk.something_is_said()
    await touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    await talk.was_heard()
    await talk.answered()


async def test_the_reference_is_one_click_away(talk: Talking) -> None:
    await talk.open()
    await talk.page.get_by_role("link", name="API reference").click()
    await talk.page.wait_for_url("**/docs")


async def test_a_keyboard_is_enough(talk: Talking, teller, told: str) -> None:
    keyboard = talk.page.keyboard
    await talk.open()
    await tab_to(talk, "Strategy")
    await keyboard.type(told)
    await tab_to(talk, "Message")
    await keyboard.type("Tell me a story")
    await keyboard.press("Enter")
    teller.tell("Once upon ")
    await expect(talk.answer).to_contain_text("Once upon")
    await tab_to(talk, "Interrupt")
    await keyboard.press("Enter")
    await talk.answered("interrupted")
    await tab_to(talk, "Hold to talk")
    await keyboard.down("Space")
    await talk.something_is_said()
    await keyboard.up("Space")
    await talk.was_heard()
    teller.tell("Tokyo.")
    teller.finish()
    assert await talk.answered() == ["Tokyo."]
    await tab_to(talk, "Look inside")
    await keyboard.press("Enter")
    await expect(talk.page.get_by_role("table", name="Events")).to_be_visible()


async def test_the_button_needs_not_be_held_where_it_cannot(talk: Talking, say, ear: str) -> None:
    """A screen reader clicks, and no pointer or key goes up or down."""
    await talk.open(await say("Hello", recognition=ear))
    await talk.hold.evaluate("(button) => button.click()")
    await talk.something_is_said()
    await talk.hold.evaluate("(button) => button.click()")
    await talk.was_heard()
    await talk.answered()


async def test_the_tabs_are_changed_by_arrow_keys(talk: Talking) -> None:
    await talk.open()
    await talk.tab("Conversation").focus()
    await talk.page.keyboard.press("ArrowRight")
    await expect(talk.tab("Pronunciation")).to_be_focused()
    await talk.page.keyboard.press("Enter")
    await expect(talk.tab("Pronunciation")).to_have_attribute("aria-selected", "true")
    await expect(talk.page.get_by_role("textbox", name="Text to read")).to_be_visible()
    await expect(talk.message).to_be_hidden()


@pytest.mark.parametrize("height", [740, 640])
async def test_a_phone_shows_an_alert_whole(visit: Visit, put, account: str, height: int) -> None:
    await put("conversation", "broken", {"chat": {"account": account, "model": "refuse:503"}})
    talk = await visit(**PHONE | {"viewport": {"width": 360, "height": height}})
    await talk.open("broken")
    await talk.say("Tell me a story")
    await expect(talk.alert).to_be_visible()
    await expect(talk.status).to_contain_text("Ready")
    hidden = await talk.alert.evaluate(_HIDDEN)
    assert hidden == []
    await talk.button("Close this message").click()
    await expect(talk.alert).to_have_count(0)
