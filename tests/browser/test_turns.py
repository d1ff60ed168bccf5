"""Typed and spoken turns on the talk page."""

import re

from playwright.async_api import expect

from tests.browser.conftest import SPOKEN
from tests.browser.talk_page import TalkPage, plain

STORY = "Once upon a time there was a harbour.\n\nA bell rang at the end of the pier."


async def test_a_typed_message_is_answered_in_paragraphs(talk: TalkPage, fixed_strategy) -> None:
    await talk.open(await fixed_strategy(STORY))
    await talk.say("Tell me a story")
    assert await talk.answered() == STORY.split("\n\n")
    await expect(talk.user_message).to_have_text(re.compile("Tell me a story"))
    await expect(talk.message).to_have_value("")
    assert await talk.stored("user") == ["Tell me a story"]
    assert await talk.stored("assistant") == STORY.split("\n\n")


async def test_text_is_shown_as_it_arrives(talk: TalkPage, controlled_vendor, controlled_strategy: str) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    for word in ("Once ", "upon ", "a time.\n\n", "There "):
        controlled_vendor.send(word)
        await expect(talk.answer).to_contain_text(word.strip())
        await expect(talk.answer).to_have_attribute("data-state", "running")
    controlled_vendor.send("was.")
    controlled_vendor.finish()
    assert await talk.answered() == ["Once upon a time.", "There was."]


async def test_the_words_of_a_spoken_message_appear_and_are_answered(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    await talk.press(talk.hold)
    await expect(talk.status).to_contain_text("Listening")
    await expect(talk.hold).to_have_attribute("aria-pressed", "true")
    await talk.speech_ended()
    await talk.page.mouse.up()
    await expect(talk.hold).to_have_attribute("aria-pressed", "false")
    [answer] = await talk.answered()
    said = await talk.user_message.locator("p").inner_text()
    assert plain(said) == plain(SPOKEN)
    assert answer == f"You said: {said}"
    assert await talk.stored("user") == [said]


async def test_a_conversation_continues_until_a_new_one_is_started(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    await talk.say("The sea is grey")
    await talk.answered()
    first = talk.conversation_id
    await talk.say("What did I say?")
    assert await talk.answered() == ["Earlier you said: The sea is grey"]
    assert talk.conversation_id == first
    await talk.button("New conversation").click()
    await expect(talk.user_message).to_have_count(0)
    await expect(talk.answer).to_have_count(0)
    await talk.say("What did I say?")
    assert await talk.answered() == ["You have not said anything before this."]
    assert talk.conversation_id != first


async def test_the_keyboard_is_enough_to_ask_and_to_interrupt(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open()
    await talk.choose(controlled_strategy)
    await talk.page.reload()
    await talk.ready()
    await expect(talk.message).to_be_focused()
    await talk.page.keyboard.type("Tell me a story")
    await talk.page.keyboard.press("Enter")
    controlled_vendor.send("Once upon a time")
    await expect(talk.answer).to_contain_text("Once upon a time")
    await talk.page.keyboard.press("Escape")
    assert await talk.answered("interrupted") == ["Once upon a time"]


async def test_the_chosen_languages_are_requested(talk: TalkPage, visit, fixed_strategy, put) -> None:
    await talk.open(await fixed_strategy("Guten Tag."))
    async with talk.page.expect_request("**/bp/ai/conversation") as request:
        await talk.pick("I speak", "de-DE")
        await talk.pick("Answer in", "fr-FR")
        await talk.say("Hallo")
        body = (await request.value).post_data
    assert '"language_code":"de-DE"' in body
    assert '"target_language_code":"fr-FR"' in body
    await talk.answered()


async def test_a_returning_user_finds_the_conversation(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    await talk.say("The sea is grey")
    answer = await talk.answered()
    token = talk.token
    await talk.page.reload()
    await talk.ready()
    assert await talk.answered() == answer
    await expect(talk.user_message).to_contain_text("The sea is grey")
    await talk.say("What did I say?")
    assert await talk.answered() == ["Earlier you said: The sea is grey"]
    assert talk.token == token


async def test_the_strategy_that_needs_no_key_is_chosen_first(talk: TalkPage, put, account: str) -> None:
    chat = {"account": account, "model": "say:Hello"}
    await put("conversation", "aaa", {"chat": chat, "recognition": "local", "speech": "local"})
    await talk.open()
    async with talk.settings():
        assert await talk.strategy.locator("option").first.text_content() == "aaa"
        await expect(talk.strategy).to_have_value("local")
