"""The mode without hands: the page detects when the user speaks, and sends what was said after a pause."""

from playwright.async_api import expect

from tests.browser.conftest import SPOKEN
from tests.browser.talk_page import TalkPage, plain


async def test_an_utterance_is_sent_after_a_pause(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    async with talk.one_more_turn():
        await talk.button("Hands-free").click()
        await expect(talk.status).to_contain_text("Listening")
    [answer] = await talk.answered()
    said = await talk.user_message.locator("p").inner_text()
    assert plain(said) == plain(SPOKEN)
    assert answer == f"You said: {said}"
    await expect(talk.status).to_contain_text("Speak at any time")
    await talk.button("Hands-free").click()
    await expect(talk.status).to_contain_text("Ready")


async def test_the_mode_ends_if_the_microphone_is_not_allowed(visit) -> None:
    talk = await visit(permissions=[])
    await talk.open("scripted-text")
    await talk.button("Hands-free").click()
    await expect(talk.alert).to_contain_text("not allowed for this page")
    await expect(talk.button("Hands-free")).to_have_attribute("aria-pressed", "false")
