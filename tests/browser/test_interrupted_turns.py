"""Turns that are interrupted: what the conversation and the timeline show of them."""

import asyncio
import re

from playwright.async_api import Locator, Route, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage

UNRECOGNIZED = "Interrupted before it was recognized."
_ENDS = """async () => {
    const { axisOf, marksOf, spansOf } = await import("/static/inside/spans.js");
    const record = window.parley.details;
    return [axisOf(spansOf(record)).to, marksOf(record).total];
}"""
"""Returns where the axis of the last turn ends, and how long the turn took."""


def log_of(talk: TalkPage) -> Locator:
    return talk.page.get_by_role("log", name="Conversation")


async def check_timeline(talk: TalkPage, *stages: str) -> None:
    """Wait until the timeline has these stages, the last one up to the interruption."""
    spans = talk.details.get_by_role("figure", name="Timeline").get_by_role("listitem")
    *complete, last = stages
    titles = [*(f"^{title}.*ms$" for title in complete), f"^{last}.*interrupted$"]
    await expect(spans).to_have_text([re.compile(title) for title in titles])
    end, total = await talk.page.evaluate(_ENDS)
    assert end == total


async def test_speech_that_was_interrupted_before_its_recognition_is_named(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    controlled_vendor.hears.clear()
    await talk.open(controlled_strategy)
    await talk.say_aloud()
    await talk.interrupt()
    await expect(talk.user_message).to_have_text(UNRECOGNIZED)
    await expect(log_of(talk)).to_have_text(UNRECOGNIZED)  # One line, and nothing else.
    [line] = await log_of(talk).get_by_text("Interrupted").all()
    assert (await talk.user_message.bounding_box())["height"] == (await line.bounding_box())["height"]
    await expect(talk.details).to_contain_text("Interrupted before it was recognized")
    await expect(talk.details).not_to_contain_text("Integrity verified")
    await check_accessibility(talk.page)
    await keep_picture(talk.page, "talk-not-recognized")
    controlled_vendor.hears.set()


async def test_speech_that_interrupts_an_answer_and_is_interrupted_itself_does_not_repeat_that_answer(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    recording = asyncio.Event()

    async def held_back(route: Route) -> None:
        if route.request.method == "DELETE":
            await recording.wait()
        await route.continue_()

    await talk.page.route("**/bp/ai/stream/*", held_back)
    controlled_vendor.hears.clear()
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    controlled_vendor.send("Once upon a time")
    await expect(talk.answer).to_contain_text("Once upon a time")
    async with talk.page.expect_response("**/bp/ai/conversation"):
        await talk.press(talk.hold)
        await talk.some_speech_recorded()
        recording.set()
        await talk.page.mouse.up()
    await talk.interrupt()
    await expect(talk.user_message).to_have_text(UNRECOGNIZED)
    await expect(talk.details).to_contain_text("Interrupted before it was recognized")
    await expect(log_of(talk).get_by_text("Once upon a time")).to_have_count(1)
    assert await talk.stored("assistant") == ["Once upon a time"]
    controlled_vendor.hears.set()


async def test_the_last_stage_of_an_interrupted_turn_ends_with_the_interruption(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open(controlled_strategy)
    controlled_vendor.hears.clear()
    await talk.say_aloud()
    await talk.interrupt()
    await check_timeline(talk, "Upload", "Recognition")
    await talk.say("Tell me a story")
    await expect(talk.details).to_contain_text("waiting")
    await talk.interrupt()
    await check_timeline(talk, "Request", "Model")
    await keep_picture(talk.page, "inside-interrupted")
    await talk.say("Tell me a story")
    controlled_vendor.send("Once upon a time")
    await expect(talk.answer).to_contain_text("Once upon a time")
    await talk.interrupt()
    await check_timeline(talk, "Request", "Model", "Answer")
    controlled_vendor.hears.set()
