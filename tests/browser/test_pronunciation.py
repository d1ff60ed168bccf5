"""The pronunciation tab shows a learner how clear each word and sound was, and what to practise."""

import re
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import SPOKEN, Put, Visit
from tests.browser.controlled_vendor import ControlledVendor
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage, plain

NOT_SAID = "old"
GRADED_WITHIN_MS = 90_000
"""The local engines need long on a busy machine."""
SCREENS = {
    "desktop-light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "desktop-dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone-light": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True},
    "phone-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True},
}
PLAYED = """
const urlOf = URL.createObjectURL;
const sizes = new Map();
URL.createObjectURL = (blob) => {
    const url = urlOf(blob);
    sizes.set(url, blob.size);
    return url;
};
window.played = [];
HTMLMediaElement.prototype.play = async function () {
    window.played.push(sizes.get(this.src));
};
"""
"""Notes the sizes of the sounds that the page plays, which then do not end."""


LOUD = "(button) => Number(button.style.getPropertyValue('--level')) > 0.1"
"""Whether the button shows that somebody speaks."""


def graded(score: float, **fields: Any) -> dict[str, Any]:
    return {"PronunciationAssessment": {"AccuracyScore": score, **fields}}


def sound(name: str, score: float, heard: str | None = None) -> dict[str, Any]:
    nearest = (
        {"NBestPhonemes": [{"Phoneme": heard, "Score": 90.0}, {"Phoneme": name, "Score": score}]} if heard else {}
    )
    return {"Phoneme": name, **graded(score, **nearest)}


def word(text: str, score: float, *sounds: dict[str, Any], error: str = "None") -> dict[str, Any]:
    time = {"Offset": 5_000_000, "Duration": 4_000_000}
    return {"Word": text, **time, **graded(score, ErrorType=error), "Phonemes": list(sounds)}


WEAK: dict[str, Any] = {
    "text": "I sink it",
    "raw_data": {
        "NBest": [
            {
                **graded(55.0, FluencyScore=71.0, CompletenessScore=67.0, PronScore=58.0),
                "Words": [
                    word("i", 95.0, sound("ay", 95.0)),
                    word(
                        *("think", 41.0, sound("th", 12.0, "s"), sound("ih", 70.0), sound("ng", 90.0, "n")),
                        sound("k", 95.0),
                        error="Mispronunciation",
                    ),
                    word("so", 0.0, error="Omission"),
                    word("it", 88.0, sound("ih", 88.0), sound("t", 90.0), error="Insertion"),
                    word("are", 50.0, sound("er", 50.0)),
                ],
            }
        ]
    },
}


@pytest_asyncio.fixture(loop_scope="session")
async def weak_strategy(put: Put, controlled_vendor: ControlledVendor) -> str:
    """The first strategy for assessments. It finds the reading `WEAK`."""
    controlled_vendor.assessment = WEAK
    name = f"assessor-{uuid4().hex}"
    await put("vendor_accounts", name, {"platform": "local_audio", "base_url": controlled_vendor.url})
    await put("pronunciation", "a-weak", {"accounts": [{"account": name, "model": "any"}]})
    return "a-weak"


def middle(box: dict[str, float]) -> float:
    return box["x"] + box["width"] / 2


def tiles(talk: TalkPage) -> Locator:
    return talk.page.get_by_role("list", name="Words").get_by_role("listitem")


async def read_aloud(talk: TalkPage, text: str) -> None:
    await talk.page.get_by_role("textbox", name="Text to read").fill(text)
    await talk.press(talk.record)
    await expect(talk.record).to_have_attribute("aria-pressed", "true")
    await talk.page.wait_for_function(LOUD, arg=await talk.record.element_handle())
    await talk.speech_ended()
    await talk.page.mouse.up()


async def test_the_words_of_a_text_read_aloud_are_scored(talk: TalkPage) -> None:
    text = SPOKEN.replace("capital", f"{NOT_SAID} capital")
    await talk.open()
    await talk.tab("Pronunciation").click()
    await read_aloud(talk, text)
    await expect(tiles(talk)).to_have_count(len(text.split()), timeout=GRADED_WITHIN_MS)
    poor = []
    for tile, written in zip(await tiles(talk).all_inner_texts(), text.split(), strict=True):
        assert plain(tile).startswith(plain(written))
        if written == NOT_SAID:
            assert "not said" in tile
        elif not re.search(r"\b(clear|almost), \d+", tile):
            poor.append(tile)
    assert len(poor) <= 1, poor  # The fake microphone drops audio on a busy machine.
    await expect(tiles(talk).filter(has_text="what")).to_contain_text("w")
    await expect(talk.page.get_by_role("list", name="Scores")).to_contain_text(
        re.compile(r"Sounds\s*\d+.*Flow\s*\d+")
    )
    await check_accessibility(talk.page)
    await keep_picture(talk.page, "talk-pronunciation")


@pytest.mark.parametrize("screen", SCREENS)
async def test_a_weak_sound_is_shown_with_what_was_heard_and_how_to_make_it(
    visit: Visit, weak_strategy: str, screen: str
) -> None:
    talk = await visit(**SCREENS[screen])
    await talk.open()
    await talk.tab("Pronunciation").click()
    await keep_picture(talk.page, f"pronunciation-empty-{screen}")
    listen, hold, following = [
        await button.bounding_box() for button in (talk.button("Listen"), talk.record, talk.button("Next sentence"))
    ]
    assert abs(middle(hold) - SCREENS[screen]["viewport"]["width"] / 2) <= 1
    assert abs(middle(listen) + middle(following) - 2 * middle(hold)) <= 1
    await read_aloud(talk, "I think so")
    await expect(talk.page.get_by_role("img", name="Overall 58 of 100, unclear")).to_be_visible()
    await expect(talk.page.get_by_text("To practise: think, so, are.")).to_be_visible()
    seen = [re.sub(r"\s+", " ", text).strip() for text in await tiles(talk).all_inner_texts()]
    assert [text.split(" ")[0] for text in seen] == ["i", "think", "so", "it", "are"]
    captions = ("clear, 95", "unclear, 41", "not said", "not in the text", "unclear, 50")
    for text, caption in zip(seen, captions, strict=True):
        assert text.endswith(caption)
    think = tiles(talk).nth(1)
    marks = [re.compile("^θ unclear"), re.compile("^ɪ almost"), "ŋ", "k"]  # noqa: RUF001
    await expect(think.locator(".sound")).to_have_text(marks)
    practice = talk.page.get_by_role("region", name="Practice")
    await expect(practice.get_by_role("heading")).to_have_text("think /θɪŋk/")  # noqa: RUF001
    hints = practice.get_by_role("listitem")
    await expect(hints).to_have_count(2)
    await expect(hints.first).to_contain_text("You said s, try θ. Put the tip of the tongue between your teeth")
    phonemes = talk.page.get_by_role("row", name="think th θ 12")
    await expect(phonemes).to_be_hidden()
    await keep_picture(talk.page, f"pronunciation-weak-{screen}")
    await check_accessibility(talk.page)
    assert await talk.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    await tiles(talk).nth(2).get_by_role("button").click()
    await expect(practice).to_contain_text("This word was not heard")
    await tiles(talk).nth(4).get_by_role("button").click()
    await expect(practice).to_contain_text("are /ɝ/")
    await expect(practice).to_contain_text("This is its short form, as in fluent speech. Alone, it is said /ɑɹ/.")
    await talk.page.get_by_text("For developers").click()
    await expect(phonemes).to_be_visible()


async def test_nothing_looks_like_a_result_before_there_is_one(talk: TalkPage, weak_strategy: str) -> None:
    await talk.open()
    await talk.tab("Pronunciation").click()
    example = talk.page.locator(".expected")
    await expect(example).to_contain_text("Example")
    await talk.page.get_by_role("textbox", name="Text to read").fill("I think so, too.")
    await talk.press(talk.record)
    await expect(talk.page.get_by_text("Listening… release when you have read it")).to_be_visible()
    await expect(example.locator(".tile")).to_have_text(["I", "think", "so,", "too."])
    await expect(example).not_to_contain_text("Example")
    await check_accessibility(talk.page)
    await keep_picture(talk.page, "pronunciation-recording")
    await talk.speech_ended()
    await talk.page.mouse.up()
    await expect(tiles(talk)).to_have_count(5)
    await talk.press(talk.record)
    await expect(tiles(talk)).to_have_count(0)
    await talk.page.mouse.up()


async def test_the_sentence_and_the_recording_can_be_compared_by_ear(talk: TalkPage, weak_strategy: str) -> None:
    await talk.page.add_init_script(PLAYED)
    await talk.open()
    await talk.tab("Pronunciation").click()
    await read_aloud(talk, "I think so")
    assessment = talk.page.get_by_role("region", name="Assessment")
    for number, name in enumerate(("Listen", "Your recording", "Listen to the word", "Your word"), 1):
        button = assessment.get_by_role("button", name=name, exact=True)
        await button.click()
        await expect(button).to_have_attribute("aria-pressed", "true")
        await talk.page.wait_for_function("(count) => window.played.length === count", arg=number)
    played = await talk.page.evaluate("() => window.played")
    assert 12_800 < played[-1] < 20_000 < played[1]  # The word is 0.4 s long, and the recording much longer.
    await talk.button("Your word").click()
    await expect(talk.button("Your word")).to_have_attribute("aria-pressed", "false")
    before = await talk.page.get_by_role("textbox", name="Text to read").input_value()
    await assessment.get_by_role("button", name="Next sentence").click()
    await expect(assessment).to_have_count(0)
    assert await talk.page.get_by_role("textbox", name="Text to read").input_value() != before


async def test_a_reading_that_cannot_be_assessed_is_explained(
    talk: TalkPage, weak_strategy: str, controlled_vendor: ControlledVendor, page_faults: PageFaults
) -> None:
    controlled_vendor.assessment = {"text": "", "raw_data": {}}
    await talk.open()
    await talk.tab("Pronunciation").click()
    page_faults.expected.append("the server responded with a status of 400")
    await read_aloud(talk, "I think so")
    await expect(talk.alert).to_contain_text("No speech was heard")
    await expect(talk.page.get_by_role("region", name="Assessment")).to_have_count(0)
