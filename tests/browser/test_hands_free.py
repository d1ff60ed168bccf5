"""The mode without hands: the page detects when the user speaks, and sends what was said after a pause."""

import re
import wave
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Request, expect
from yarl import URL

from tests.browser.chromium import running_chromium
from tests.browser.conftest import SPOKEN, spoken
from tests.browser.talk_page import TalkPage, plain
from tests.running.servers import Server

STORY = "\n\n".join(["The boats went out with the tide. Then a bell rang."] * 8)
OTHER = "Where is the longest river in Africa?"
PAUSE_S = 3
LONG_PAUSE_S = 7
ANSWER_MS = 120_000
"""The recognizer loads its model, and the machine may be very busy."""
COUNT_REQUESTS_FOR_THE_MICROPHONE = """
window.requests = 0;
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = (wanted) => { window.requests += 1; return ask(wanted); };
"""
DURATION = re.compile(r"\d\.\d seconds")


@pytest_asyncio.fixture(loop_scope="session")
async def talkative(microphone: Path, server: Server, tmp_path: Path) -> AsyncIterator[TalkPage]:
    """A page at whose microphone somebody asks the same again and again, and leaves a pause for the answer."""
    async with page_that_hears([microphone], server, tmp_path, pause_s=PAUSE_S) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="session")
async def curious(microphone: Path, local_vendors: str, server: Server, tmp_path: Path) -> AsyncIterator[TalkPage]:
    """A page at whose microphone somebody asks two questions alternately. The pauses suffice for a recognizer."""
    other = await spoken(local_vendors, OTHER, tmp_path / "other.wav")
    async with page_that_hears([microphone, other], server, tmp_path, pause_s=LONG_PAUSE_S) as talk:
        yield talk


@asynccontextmanager
async def page_that_hears(
    recordings: Sequence[Path], server: Server, folder: Path, *, pause_s: int
) -> AsyncIterator[TalkPage]:
    """Open a page whose microphone plays the recordings again and again, with a pause after each."""
    path = folder / "again.wav"
    with wave.open(str(path), "wb") as again, wave.open(str(recordings[0])) as first:
        again.setparams(first.getparams())
        for recording in recordings:
            with wave.open(str(recording)) as one:
                again.writeframes(one.readframes(one.getnframes()) + bytes(2 * pause_s * one.getframerate()))
    async with running_chromium(path, again=True) as browser:
        context = await browser.new_context(permissions=["microphone"])
        talk = TalkPage(await context.new_page(), server)
        talk.watch()
        yield talk


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


async def test_questions_and_an_interruption_need_no_click(
    talkative: TalkPage, fixed_strategy, duration_recognition: str
) -> None:
    """The mode was on during the last visit, so the page listens when it is opened. Then only the voice is used."""
    talk = talkative
    await talk.open(await fixed_strategy(STORY, speech="local", recognition=duration_recognition))
    await talk.button("Hands-free").click()
    await expect(talk.button("Hands-free")).to_have_attribute("aria-pressed", "true")
    async with talk.page.expect_request(_heard_something):
        await talk.page.reload()
        await talk.ready()
    await talk.playing()
    await expect(talk.button("Hands-free")).to_have_attribute("aria-pressed", "true")
    await talk.button("Hands-free").click()
    await talk.interrupt()
    await talk.answered("interrupted")
    questions, answers = _said(await talk.history())
    assert len(questions) >= 2
    assert all(map(DURATION.fullmatch, questions))
    assert any(answers)
    assert all(STORY.startswith(heard) and heard != STORY for heard in answers)
    await expect(talk.alert).to_have_count(0)


@pytest.fixture
def asked(talk: TalkPage) -> list[Request]:
    """The requests of the page that begin a turn."""
    requests: list[Request] = []
    talk.page.on("request", lambda request: request.url.endswith("/conversation") and requests.append(request))
    return requests


async def test_what_is_typed_replaces_what_is_being_said(talk: TalkPage, asked: list[Request]) -> None:
    await talk.open("scripted-text")
    await talk.button("Hands-free").click()
    await expect(talk.status).to_contain_text("Listening")
    await talk.message.fill("The sea is grey")
    await talk.message.press("Enter")
    await talk.speech_ended()
    assert await talk.answered() == ["You said: The sea is grey"]
    await expect(talk.status).to_contain_text("Speak at any time")
    assert len(asked) == 1
    await expect(talk.alert).to_have_count(0)


async def test_a_new_conversation_discards_what_is_being_said(talk: TalkPage, asked: list[Request]) -> None:
    await talk.open("scripted-text")
    await talk.button("Hands-free").click()
    await expect(talk.status).to_contain_text("Listening")
    await talk.button("New conversation").click()
    await expect(talk.user_message).to_have_count(0)
    await expect(talk.status).to_contain_text("Speak at any time")
    await talk.speech_ended()
    await talk.say("The sea is grey")
    assert await talk.answered() == ["You said: The sea is grey"]
    assert len(asked) == 1


async def test_the_mode_ends_with_a_strategy_that_does_not_hear(talk: TalkPage, fixed_strategy) -> None:
    deaf = await fixed_strategy("Hello")
    await talk.open("scripted-text")
    await talk.button("Hands-free").click()
    await expect(talk.button("Hands-free")).to_have_attribute("aria-pressed", "true")
    await talk.choose(deaf)
    await expect(talk.button("Hands-free")).to_have_count(0)
    await expect(talk.status).to_contain_text("Ready")


async def test_two_questions_are_recognized_though_the_second_interrupts_the_answer_to_the_first(
    curious: TalkPage, fixed_strategy
) -> None:
    talk = curious
    await talk.open(await fixed_strategy(STORY, speech="local", recognition="local"))
    async with talk.page.expect_request(_heard_something, timeout=ANSWER_MS):
        await talk.button("Hands-free").click()
    await talk.playing()
    await talk.button("Hands-free").click()
    await talk.interrupt()
    await talk.answered("interrupted")
    questions, answers = _said(await talk.history())
    assert set(map(plain, questions[-2:])) == {plain(SPOKEN), plain(OTHER)}
    assert any(answers)
    assert all(STORY.startswith(heard) and heard != STORY for heard in answers)
    await expect(talk.alert).to_have_count(0)


async def test_the_address_can_ask_for_the_mode(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    await talk.page.goto(f"{talk.server.url}/?hands-free")
    await talk.ready()
    await expect(talk.button("Hands-free")).to_have_attribute("aria-pressed", "true")


async def test_a_link_does_not_ask_for_the_microphone(visit) -> None:
    talk = await visit(permissions=[])
    await talk.page.add_init_script(COUNT_REQUESTS_FOR_THE_MICROPHONE)
    await talk.open("scripted-text")
    await talk.page.goto(f"{talk.server.url}/?hands-free")
    await talk.ready()
    await talk.say("Hello")
    await talk.answered()
    await expect(talk.button("Hands-free")).to_have_attribute("aria-pressed", "false")
    assert await talk.page.evaluate("() => window.requests") == 0


async def test_the_mode_ends_if_the_microphone_is_not_allowed(visit) -> None:
    talk = await visit(permissions=[])
    await talk.open("scripted-text")
    await talk.button("Hands-free").click()
    await expect(talk.alert).to_contain_text("not allowed for this page")
    await expect(talk.button("Hands-free")).to_have_attribute("aria-pressed", "false")


def _said(history: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the questions and the answers of a history."""
    user, assistant = (
        [_text(message) for message in history if message["role"] == role] for role in ("user", "assistant")
    )
    return user, assistant


def _text(message: dict[str, Any]) -> str:
    return "\n\n".join(item["text"] for item in message["content"] if item["type"] == "text")


def _heard_something(request: Request) -> bool:
    """Return whether this interrupts an answer of which something was heard."""
    return request.method == "DELETE" and int(URL(request.url).query.get("heard_ms", 0)) > 0
