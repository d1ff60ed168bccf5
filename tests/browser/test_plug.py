"""Connections that are lost in the middle of an answer."""

import re
from dataclasses import replace
from random import Random

import pytest
from playwright.async_api import expect

from tests.browser.cable import cable_to
from tests.browser.conftest import Visit
from tests.browser.guard import Guard
from tests.browser.talking import Talking
from tests.servers import Server

STORY = """\
One morning a thick fog came in from the sea, and nobody could see the way home.

Then a bell rang: three times, and three times again … “come in”, it said. 🔔

By noon every boat was back, and the whole harbour sat together and listened."""
PARAGRAPHS = STORY.split("\n\n")
WORDS = re.findall(r"\S+\s*", STORY)
DICE = Random(6)  # noqa: S311 - the same every time
POINTS = sorted(DICE.sample(range(1, len(WORDS)), 10))
CUTS = [DICE.randrange(300, 1_500) for _ in range(5)]
"""Bytes from the server between two breaks."""


async def shown(talk: Talking, words: list[str]) -> None:
    """Wait until the page shows these words, and no others, of the answer."""
    await expect(talk.answer.locator("p")).to_have_text("".join(words).strip().split("\n\n"))


async def test_an_answer_is_whole_wherever_the_plug_is_pulled(talk: Talking, teller, told: str) -> None:
    await talk.open(told)
    for turn, point in enumerate(POINTS, 1):
        await talk.say(f"Tell me a story, I shall stop you after {point} words")
        teller.tell(*WORDS[:point])
        await shown(talk, WORDS[:point])
        await talk.button("Disconnect").click()
        teller.tell(*WORDS[point:])
        teller.finish()
        assert await talk.answered() == PARAGRAPHS, f"after {point} words"
        await talk.verdict()
        assert await talk.page.evaluate("() => window.parley.run.resumed.length") == 1
        assert await talk.kept("assistant") == PARAGRAPHS
        assert len(talk.streams) == turn


async def test_a_network_that_breaks_in_the_middle_of_anything_loses_nothing(
    visit: Visit, server: Server, guard: Guard, teller, told: str
) -> None:
    async with cable_to(server.url) as cable:
        talk = await visit(replace(server, url=cable.url))
        await talk.open(told)
        guard.expected.append("net::ERR_")
        cable.cuts = list(CUTS)
        teller.tell(*WORDS)
        teller.finish()
        await talk.say("Tell me a story")
        assert await talk.answered() == PARAGRAPHS
        assert cable.cuts == []
        await talk.verdict()
        assert await talk.kept("assistant") == PARAGRAPHS
        assert len(await talk.kept("user")) == 1


@pytest.mark.parametrize("point", [0, len(WORDS) // 2])
async def test_a_page_that_is_loaded_again_picks_the_answer_up(
    talk: Talking, teller, told: str, point: int
) -> None:
    await talk.open(told)
    await talk.say("Tell me a story")
    teller.tell(*WORDS[:point])
    if point:
        await shown(talk, WORDS[:point])
    await expect(talk.answer).to_have_attribute("data-state", "running")
    await talk.page.reload()
    await talk.ready()
    await expect(talk.answer).to_have_attribute("data-state", "running")
    await expect(talk.said).to_contain_text("Tell me a story")
    teller.tell(*WORDS[point:])
    teller.finish()
    assert await talk.answered() == PARAGRAPHS
    await talk.verdict()
    assert len(talk.streams) == 1


async def test_an_interruption_reaches_the_server_once_the_line_is_there_again(
    visit: Visit, server: Server, guard: Guard, teller, told: str
) -> None:
    async with cable_to(server.url) as cable:
        talk = await visit(replace(server, url=cable.url))
        await talk.open(told)
        guard.expected.append("net::ERR_")
        await talk.say("Tell me a story")
        teller.tell(*WORDS[:5])
        await shown(talk, WORDS[:5])
        cable.down = True
        cable.cut()
        async with talk.page.expect_event("requestfailed", lambda request: request.method == "DELETE"):
            await talk.button("Interrupt").click()
        await expect(talk.status).to_contain_text("Reconnecting")
        await expect(talk.answer).to_have_attribute("data-state", "running")
        cable.down = False
        left = await talk.answered("interrupted")
        await teller.left.wait()
        assert left == await talk.kept("assistant") == ["".join(WORDS[:5])]
        await expect(talk.status).to_contain_text("Ready")
