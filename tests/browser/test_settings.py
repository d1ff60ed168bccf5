"""The settings of the talk page, and what is offered for an answer."""

import re

import pytest
from playwright.async_api import expect

from tests.browser.accessibility import check_accessibility
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage

STORY = "By noon every boat was back."
INTERRUPT = """async (button) => {
    while (window.parley.player.state !== "playing" || button.disabled) await new Promise(requestAnimationFrame);
    button.click();
}"""
"""Interrupts while the answer is played, however short it is."""


async def test_the_settings_are_part_of_the_request_and_are_kept(talk: TalkPage, put, account: str) -> None:
    for name in ("a-first", "b-second", "c-third"):
        await put("conversation", name, {"chat": {"account": account, "model": "say:Hello"}, "speech": "local"})
    await talk.open("b-second")
    settings = talk.page.get_by_role("dialog", name="Settings")
    async with talk.settings():
        strategy = settings.get_by_role("combobox", name="Strategy")
        await expect(strategy).to_have_accessible_description(re.compile("A strategy names the models"))
        heights = {
            (await field.bounding_box())["height"]
            for field in await settings.locator("select, input[placeholder]").all()
        }
        assert len(heights) == 1
        await settings.get_by_role("checkbox", name="fall back").check()
        await settings.get_by_role("button", name="Try a-first later").click()
        while not (await settings.get_by_role("listitem").first.inner_text()).startswith("c-third"):
            await settings.get_by_role("button", name="Try c-third earlier").click()
        await settings.get_by_role("checkbox", name="a-first").uncheck()
        await settings.get_by_role("textbox", name="Voice").fill("en-gb")
        for number, value in enumerate(
            (("name", "Ada"), ("unused", "?"), ("beginner", "true"), ("room", "007")), 1
        ):
            await settings.get_by_role("button", name="Add a value").click()
            await expect(settings.get_by_role("textbox", name=f"Name of value {number}")).to_be_focused()
            for label, text in zip(("Name of value", "Value"), value, strict=True):
                await settings.get_by_role("textbox", name=f"{label} {number}", exact=True).fill(text)
        await settings.get_by_role("button", name="Remove unused").click()
        await check_accessibility(talk.page)
        await keep_picture(talk.page, "talk-settings-values")
    await talk.page.reload()
    await talk.ready()
    async with talk.page.expect_request("**/bp/ai/conversation") as request:
        await talk.say("Hello")
        body = (await request.value).post_data
    assert body.startswith('{"strategies":["b-second","c-third",')
    assert "a-first" not in body
    assert '"voice":"en-gb"' in body
    assert '"params":{"name":"Ada","beginner":true,"room":"007"}' in body
    await talk.answered()
    async with talk.settings():
        await expect(settings.get_by_role("textbox", name="Value 2", exact=True)).to_have_value("true")


async def test_a_new_user_has_no_conversation(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    await talk.say("The sea is grey")
    await talk.answered()
    before = talk.token
    await talk.button("Settings").click()
    await talk.button("Start as a new user").click()
    await expect(talk.user_message).to_have_count(0)
    await talk.ready()
    await talk.say("What did I say?")
    await talk.answered()
    assert talk.token != before


async def test_an_example_begins_a_conversation(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    async with talk.one_more_turn():
        await talk.button("Tell me a story about the sea.").click()
    await expect(talk.user_message).to_contain_text("Tell me a story about the sea.")
    await talk.answered()


async def test_an_answer_is_replayed_as_it_was_spoken(talk: TalkPage, fixed_strategy) -> None:
    await talk.open(await fixed_strategy(STORY, speech="local"))
    await talk.say("Tell me a story")
    await talk.playing()
    await talk.answered()
    played = await talk.played()
    await expect(talk.status).to_contain_text("Ready")
    await talk.button("Replay").click()
    await talk.playing()
    assert await talk.played() == pytest.approx(played, abs=100)
    await expect(talk.status).to_contain_text("Ready")
    await talk.button("Replay").click()
    await talk.button("Interrupt").evaluate(INTERRUPT)
    await expect(talk.status).to_contain_text("Ready")
    assert await talk.stored("assistant") == await talk.answered() == [STORY]


async def test_an_answer_is_copied(visit, fixed_strategy) -> None:
    talk = await visit(permissions=["clipboard-read", "clipboard-write"])
    await talk.open(await fixed_strategy(STORY))
    await talk.say("Tell me a story")
    await talk.answered()
    await talk.button("Copy").click()
    await expect(talk.answer).to_contain_text("Copied")
    assert await talk.page.evaluate("() => navigator.clipboard.readText()") == STORY


@pytest.mark.parametrize(("width", "opens"), [(1_280, True), (390, False)])
async def test_failed_attempts_open_the_panel_where_it_has_a_place(visit, put, account, width: int, *, opens: bool):
    await put("conversation", "broken", {"chat": {"account": account, "model": "refuse:503"}})
    talk = await visit(viewport={"width": width, "height": 800})
    await talk.open("broken")
    if opens:
        await talk.close_details()
    await talk.say("Tell me a story")
    await expect(talk.alert).to_contain_text("No strategy could answer. The vendor had an internal error.")
    await expect(talk.details).to_have_count(int(opens))
    look = talk.alert.get_by_role("button", name="Look inside")
    await expect(look).to_have_count(int(not opens))
    if not opens:
        await look.click()
    await expect(talk.details).to_contain_text("answered 503")
