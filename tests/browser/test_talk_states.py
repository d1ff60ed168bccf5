"""Every state of the talk page: axe finds nothing in it, and its pictures are kept in both sizes and themes."""

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Visit
from tests.browser.controlled_vendor import ControlledVendor
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage

DESK = {"viewport": {"width": 1_280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
STORY = """\
The boats went out with the tide, and the harbour was quiet.

Then a bell rang: three times, and three times again."""
CONVERSATION_SHARE = 0.6
"""Of the height of a phone, the conversation has at least this much."""
Keep = Callable[[str], Awaitable[None]]


def keeper(talk: TalkPage, screen: str) -> Keep:
    async def keep(state: str) -> None:
        await check_accessibility(talk.page)
        for theme in ("dark", "light"):
            await talk.page.emulate_media(color_scheme=theme)
            await keep_picture(talk.page, f"talk-{state}-{screen}-{theme}")

    return keep


@pytest.mark.parametrize("screen", ["desk", pytest.param("phone", marks=pytest.mark.soak)])
async def test_every_state_of_a_conversation(  # noqa: PLR0917 - fixtures and a case
    visit: Visit,
    put,
    account: str,
    controlled_vendor: ControlledVendor,
    make_controlled_strategy,
    duration_recognition: str,
    screen: str,
) -> None:
    chat = {"account": account, "model": "refuse:503"}
    await put("conversation", "broken", {"chat": chat, "recognition": duration_recognition})
    strategy = await make_controlled_strategy(speech="local", recognition=duration_recognition)
    talk = await visit(**(PHONE if screen == "phone" else DESK))
    keep = keeper(talk, screen)
    await talk.open()
    await keep("first-visit")
    await talk.choose(strategy)
    await talk.message.fill("Tell me a story about the sea, a harbour and a bell that nobody rings.")
    await keep("typing")
    await talk.message.fill("")

    await talk.press(talk.hold)
    await talk.some_speech_recorded()
    await keep("listening")
    await talk.page.mouse.up()
    await talk.duration_recognized()
    await keep("thinking")
    controlled_vendor.send(STORY)
    controlled_vendor.finish()
    await talk.playing()
    await keep("speaking")
    share = await talk.page.get_by_role("log").evaluate("(log) => log.clientHeight / innerHeight")
    assert share >= CONVERSATION_SHARE
    await talk.interrupt()
    await talk.answered("interrupted")
    await keep("interrupted")

    await talk.choose("broken")
    await talk.say("Is anybody there?")
    await expect(talk.alert).to_be_visible()
    await keep("error")
    await talk.button("Close this message").click()
    if screen == "desk":
        await expect(talk.details).to_contain_text("broken")
    async with talk.settings():
        await talk.page.get_by_role("checkbox", name="fall back").check()
        await keep("settings")
    controlled_vendor.send("Here I am.")
    controlled_vendor.finish()
    await talk.say("And now?")
    await talk.answered()
    await keep("fallback")


@pytest.mark.parametrize("screen", ["phone", pytest.param("desk", marks=pytest.mark.soak)])
async def test_every_state_of_a_long_conversation(visit: Visit, screen: str) -> None:
    talk = await visit(**(PHONE if screen == "phone" else DESK))
    keep = keeper(talk, screen)
    await talk.open("scripted-text")
    for _ in range(3):
        await talk.say("Repeat 60 words")
        await talk.answered()
    await keep("long")
    await talk.page.reload()
    await talk.ready()
    await talk.answered()
    await keep("history")
    await talk.button("Hands-free").click()
    await expect(talk.status).to_contain_text("Speak at any time")
    await keep("hands-free")
