"""The transcript: nothing moves while an answer grows, and the reader decides what is in sight."""

import re
from typing import Any

import pytest
from playwright.async_api import Locator, expect

from tests.browser.conftest import Visit
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage
from tests.calendar.clock import utc_now

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
MOST_BETWEEN_TURNS = 32
"""Pixels between the text of an answer and the next message at a desk, where actions are hidden."""
_TOPS = (
    "() => [...document.querySelectorAll('article')].map((each) => Math.round(each.getBoundingClientRect().top))"
)
_BESIDE_TEXT = """(answer) => {
    const line = parseFloat(getComputedStyle(answer, "::before").height);
    const text = answer.querySelector("small").getBoundingClientRect().height;
    return line > text / 2 && line <= text;
}"""
"""Whether the line that marks an answer without text is as long as the note about it."""
_FROM_END = "(log) => Math.round(log.scrollHeight - log.scrollTop - log.clientHeight)"


def log_of(talk: TalkPage) -> Locator:
    return talk.page.get_by_role("log", name="Conversation")


async def test_nothing_moves_while_an_answer_grows(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    before = await talk.page.evaluate(_TOPS)
    for sentence in ("Once upon a time there was a harbour.\n\n", "A bell rang."):
        controlled_vendor.send(sentence)
        await expect(talk.answer).to_contain_text(sentence.strip())
        assert await talk.page.evaluate(_TOPS) == before
    height = (await talk.answer.bounding_box())["height"]
    controlled_vendor.finish()
    await talk.answered()
    assert await talk.page.evaluate(_TOPS) == before
    assert (await talk.answer.bounding_box())["height"] == height


async def test_hidden_actions_leave_no_gap_between_turns(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    await talk.interrupt()
    await talk.answered("interrupted")
    assert await talk.answer.evaluate(_BESIDE_TEXT)
    note = talk.answer.get_by_text("Interrupted before any of it was heard.")
    top = (await note.bounding_box())["y"]
    await talk.say("And now?")
    box = await log_of(talk).get_by_text("Interrupted before any of it was heard.").bounding_box()
    assert box["y"] == top
    assert (await talk.user_message.bounding_box())["y"] - box["y"] - box["height"] <= MOST_BETWEEN_TURNS
    controlled_vendor.finish()


@pytest.mark.parametrize("width", [1_280, 390])
async def test_the_tabs_stay_where_they_are(visit: Visit, width: int) -> None:
    talk = await visit(viewport={"width": width, "height": 800})
    await talk.open()
    before = await talk.tab("Pronunciation").bounding_box()
    await talk.tab("Pronunciation").dblclick()
    await expect(talk.button("Settings")).to_be_hidden()
    assert await talk.tab("Pronunciation").bounding_box() == before
    await expect(talk.record).to_be_visible()


async def test_on_a_phone_one_line_below_the_message_says_how_to_speak(visit: Visit) -> None:
    talk = await visit(**PHONE)
    await talk.open("scripted-text")
    hint = talk.page.get_by_text("Hold the microphone to talk.")
    await expect(hint).to_be_visible()
    await expect(talk.page.get_by_text("Enter sends")).to_be_hidden()
    before = await talk.hold.bounding_box()
    await talk.button("Hands-free").click()
    await expect(hint).to_be_hidden()
    await expect(talk.status).to_contain_text("Speak at any time")
    assert await talk.hold.bounding_box() == before
    centers = [
        box["y"] + box["height"] / 2
        for box in (await talk.status.bounding_box(), await talk.message.bounding_box())
    ]
    assert centers[0] == centers[1]
    await keep_picture(talk.page, "talk-hands-free-phone")


async def test_a_reader_of_earlier_messages_is_not_disturbed(
    visit: Visit, controlled_vendor, controlled_strategy: str
) -> None:
    talk = await visit(viewport={"width": 1_280, "height": 480})
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    controlled_vendor.send(*["A bell rang.\n\n"] * 20, "Then ")
    await expect(talk.answer).to_contain_text("Then")
    log = log_of(talk)
    assert await log.evaluate(_FROM_END) == 0
    await log.evaluate("(log) => (log.scrollTop = 40)")
    await expect(talk.button("New messages")).to_have_count(0)
    controlled_vendor.send("another one.\n\n", "And another.")
    await expect(talk.answer).to_contain_text("And another.")
    assert await log.evaluate("(log) => log.scrollTop") == 40
    await talk.button("New messages").click()
    assert await log.evaluate(_FROM_END) == 0
    await expect(talk.button("New messages")).to_have_count(0)
    controlled_vendor.send("\n\nThe end.")
    await expect(talk.answer).to_contain_text("The end.")
    assert await log.evaluate(_FROM_END) == 0
    controlled_vendor.finish()
    await talk.answered()


async def test_the_actions_of_an_answer_appear_where_they_are_needed(visit: Visit, fixed_strategy) -> None:
    """At a desk they are shown for the last answer and the one that is pointed at, and on a phone always."""
    strategy = await fixed_strategy("Hello there.")
    for options, shown in (({}, "0"), ({"is_mobile": True, "has_touch": True}, "1")):
        nine = f"Etc/GMT+{(utc_now().hour - 9) % 12}"  # a zone where it is now past nine
        talk = await visit(permissions=["clipboard-read", "clipboard-write"], timezone_id=nine, **options)
        await talk.open(strategy)
        for _ in range(2):
            await talk.say("Hello")
            await talk.answered()
        first, last = await talk.page.locator(".answer-actions").all()
        await expect(last.locator("time")).to_have_text(re.compile(r"^[1-9]\d?:\d\d [AP]M$"))
        await talk.message.hover()
        await expect(first).to_have_css("opacity", shown)
        await expect(last).to_have_css("opacity", "1")
        if not options:
            await first.locator("..").hover()
            await expect(first).to_have_css("opacity", "1")


async def test_an_answer_opens_its_own_details(talk: TalkPage, fixed_strategy) -> None:
    await talk.open(await fixed_strategy("Hello there."))
    for said in ("One", "Two"):
        await talk.say(said)
        await talk.answered()
    await talk.close_details()
    first = talk.page.get_by_role("article", name="Parley").first
    await first.hover()
    await first.get_by_role("button", name="Look inside this answer").click()
    await expect(talk.details).to_contain_text("1 of 2")
