"""Takes the picture of the talk page for the README."""

import asyncio
from pathlib import Path

import pytest_asyncio
from aiohttp import ClientSession, FormData
from playwright.async_api import expect

from tests.browser.conftest import SPOKEN, Visit
from tests.browser.pictures import FOLDER

ANSWER = """\
Good morning! The capital of Japan is Tokyo.

It grew from a fishing village that was called Edo."""


@pytest_asyncio.fixture(loop_scope="session")
async def warm_recognizer(local_vendors: str, microphone: Path) -> None:
    """Load the recognition model before the test, so that the first turn is fast."""
    form = FormData({"model": "whisper"})
    wav = await asyncio.to_thread(microphone.read_bytes)
    form.add_field("file", wav, filename="spoken.wav", content_type="audio/wav")
    async with ClientSession() as http, http.post(f"{local_vendors}/audio/transcriptions", data=form) as response:
        assert response.status == 200, await response.text()


async def test_the_page_shows_a_spoken_answer(visit: Visit, put, account, warm_recognizer: None) -> None:
    await put(
        "speech", "voice", {"account": "local-audio", "model": "espeak", "voice": "en-us", "need_viseme": True}
    )
    chat = {"account": account, "model": f"say:{ANSWER}"}
    await put("conversation", "assistant", {"chat": chat, "speech": "voice", "recognition": "local"})
    talk = await visit(viewport={"width": 1_280, "height": 800}, device_scale_factor=1.5, color_scheme="light")
    await talk.open("assistant")
    await talk.say_aloud()
    await talk.answered()
    await expect(talk.user_message.locator("p")).to_have_text(SPOKEN)
    await talk.open_details()
    await talk.page.evaluate("() => scrollTo(0, 0)")
    await expect(talk.status).to_contain_text("Speaking")
    await talk.page.screenshot(path=FOLDER / "talk.png")
