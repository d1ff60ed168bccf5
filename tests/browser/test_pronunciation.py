"""A text read aloud, and how well."""

import re

from playwright.async_api import expect

from tests.browser.accessibility import nothing_serious
from tests.browser.conftest import SPOKEN
from tests.browser.talking import Talking, plain

NOT_SAID = "old"
LONGEST_MS = 30_000
"""Of the first grading, for which models are loaded."""


async def test_the_words_of_a_text_read_aloud_are_scored(talk: Talking) -> None:
    text = SPOKEN.replace("capital", f"{NOT_SAID} capital")
    await talk.open()
    await talk.tab("Pronunciation").click()
    await talk.page.get_by_role("textbox", name="Text to read").fill(text)
    await talk.press(talk.hold)
    await expect(talk.hold).to_have_attribute("aria-pressed", "true")
    await talk.all_is_said()
    await talk.page.mouse.up()
    words = talk.page.get_by_role("list", name="Words").get_by_role("listitem")
    await expect(words).to_have_count(len(text.split()), timeout=LONGEST_MS)
    poor = []
    for word, written in zip(await words.all_inner_texts(), text.split(), strict=True):
        assert plain(word).startswith(plain(written))
        if written == NOT_SAID:
            assert "omitted" in word
        elif not re.search(r"(good|fair), \d+", word):
            poor.append(word)
    assert len(poor) <= 1, poor  # the microphone drops sound on a busy machine
    await nothing_serious(talk)
