"""The pronunciation tab scores a text that is read aloud."""

import re

from playwright.async_api import expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import SPOKEN
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage, plain

NOT_SAID = "old"


async def test_the_words_of_a_text_read_aloud_are_scored(talk: TalkPage) -> None:
    text = SPOKEN.replace("capital", f"{NOT_SAID} capital")
    await talk.open()
    await talk.tab("Pronunciation").click()
    await talk.page.get_by_role("textbox", name="Text to read").fill(text)
    await talk.press(talk.record)
    await expect(talk.record).to_have_attribute("aria-pressed", "true")
    await talk.speech_ended()
    await talk.page.mouse.up()
    words = talk.page.get_by_role("list", name="Words").get_by_role("listitem")
    await expect(words).to_have_count(len(text.split()))
    poor = []
    for word, written in zip(await words.all_inner_texts(), text.split(), strict=True):
        assert plain(word).startswith(plain(written))
        if written == NOT_SAID:
            assert "omitted" in word
        elif not re.search(r"(good|fair), \d+", word):
            poor.append(word)
    assert len(poor) <= 1, poor  # The fake microphone drops audio on a busy machine.
    await check_accessibility(talk.page)
    await keep_picture(talk.page, "talk-pronunciation")
