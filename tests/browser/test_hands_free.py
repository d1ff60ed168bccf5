"""The mode without hands: the page detects when the user speaks, and sends what was said after a pause."""

from playwright.async_api import expect

from tests.browser.conftest import SPOKEN
from tests.browser.talk_page import TalkPage, plain

_UTTERANCES = """async (frames) => {
    const { Utterances } = await import("/static/talk/voice_detection.js");
    const utterances = new Utterances();
    const changes = [];
    frames.forEach(([count, voiced, overAnswer]) => {
        for (let frame = 0; frame < count; frame += 1) {
            const change = utterances.push(voiced, { overAnswer });
            if (change) changes.push(change);
        }
    });
    return changes;
}"""

SOUNDS = {
    "a click": ([(5, True, False), (40, False, False)], []),
    "a voice": ([(6, True, False), (26, False, False)], ["began"]),
    "a pause": ([(6, True, False), (27, False, False)], ["began", "ended"]),
    "a short pause": ([(6, True, False), (20, False, False), (1, True, False), (26, False, False)], ["began"]),
    "an echo": ([(9, True, True), (40, False, True)], []),
    "over the answer": ([(10, True, True), (27, False, True), (10, True, True)], ["began", "ended", "began"]),
}
"""Numbers of frames, whether they have a voice, and whether an answer is played; the changes that they make."""


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


async def test_pauses_end_utterances_and_short_sounds_begin_none(talk: TalkPage) -> None:
    await talk.open()
    for sound, (frames, changes) in SOUNDS.items():
        assert await talk.page.evaluate(_UTTERANCES, frames) == changes, sound
