"""The page resumes answers whose connection is lost."""

import re
from dataclasses import replace
from random import Random

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visit
from tests.browser.page_faults import PageFaults
from tests.browser.talk_page import TalkPage
from tests.browser.unreliable_proxy import proxy_to
from tests.running.servers import Server

STORY = """\
One morning a thick fog came in from the sea, and nobody could see the way home.

Then a bell rang: three times, and three times again … “come in”, it said. 🔔

By noon every boat was back, and the whole harbour sat together and listened."""
PARAGRAPHS = STORY.split("\n\n")
WORDS = re.findall(r"\S+\s*", STORY)
RANDOM = Random(6)  # noqa: S311 - a repeatable choice
POINTS = sorted(RANDOM.sample(range(1, len(WORDS)), 4))
MORE_POINTS = [point for point in range(1, len(WORDS)) if point not in POINTS]
CUTS = [RANDOM.randrange(300, 1_500) for _ in range(5)]
"""Numbers of bytes from the server between two breaks."""


async def shown(talk: TalkPage, words: list[str]) -> None:
    """Wait until the page shows exactly these words of the answer."""
    await expect(talk.answer.locator("p")).to_have_text("".join(words).strip().split("\n\n"))


@pytest.mark.parametrize("points", [POINTS, pytest.param(MORE_POINTS, marks=pytest.mark.soak)], ids=["some", "all"])
async def test_an_answer_is_complete_after_a_disconnect_at_any_point(
    talk: TalkPage, controlled_vendor, controlled_strategy: str, points: list[int]
) -> None:
    await talk.open(controlled_strategy)
    for turn, point in enumerate(points, 1):
        await talk.say(f"Tell me a story, I shall stop you after {point} words")
        controlled_vendor.send(*WORDS[:point])
        await shown(talk, WORDS[:point])
        await talk.disconnect()
        controlled_vendor.send(*WORDS[point:])
        controlled_vendor.finish()
        assert await talk.answered() == PARAGRAPHS, f"after {point} words"
        await talk.check_digest()
        assert await talk.page.evaluate("() => window.parley.details.resumed.length") == 1
        assert await talk.stored("assistant") == PARAGRAPHS
        assert len(talk.streams) == turn


async def test_repeated_disconnects_lose_nothing(
    visit: Visit, server: Server, page_faults: PageFaults, controlled_vendor, controlled_strategy: str
) -> None:
    async with proxy_to(server.url) as proxy:
        talk = await visit(replace(server, url=proxy.url))
        await talk.open(controlled_strategy)
        page_faults.expected.append("net::ERR_")
        proxy.cuts = list(CUTS)
        controlled_vendor.send(*WORDS)
        controlled_vendor.finish()
        await talk.say("Tell me a story")
        assert await talk.answered() == PARAGRAPHS
        assert proxy.cuts == []
        await talk.check_digest()
        assert await talk.stored("assistant") == PARAGRAPHS
        assert len(await talk.stored("user")) == 1


@pytest.mark.parametrize("point", [0, len(WORDS) // 2])
async def test_a_reloaded_page_resumes_the_answer(
    talk: TalkPage, controlled_vendor, controlled_strategy: str, point: int
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    controlled_vendor.send(*WORDS[:point])
    if point:
        await shown(talk, WORDS[:point])
    await talk.reload_during_answer()
    await expect(talk.answer).to_have_attribute("data-state", "running")
    await expect(talk.user_message).to_contain_text("Tell me a story")
    controlled_vendor.send(*WORDS[point:])
    controlled_vendor.finish()
    assert await talk.answered() == PARAGRAPHS
    await talk.check_digest()
    assert len(talk.streams) == 1


async def test_an_interruption_is_sent_once_the_connection_is_restored(
    visit: Visit, server: Server, page_faults: PageFaults, controlled_vendor, controlled_strategy: str
) -> None:
    async with proxy_to(server.url) as proxy:
        talk = await visit(replace(server, url=proxy.url))
        await talk.open(controlled_strategy)
        page_faults.expected.append("net::ERR_")
        await talk.say("Tell me a story")
        controlled_vendor.send(*WORDS[:5])
        await shown(talk, WORDS[:5])
        proxy.down = True
        proxy.cut()
        async with talk.page.expect_event("requestfailed", lambda request: request.method == "DELETE"):
            await talk.button("Interrupt").click()
        await expect(talk.status).to_contain_text("Reconnecting")
        await expect(talk.answer).to_have_attribute("data-state", "running")
        proxy.down = False
        left = await talk.answered("interrupted")
        await controlled_vendor.disconnected.wait()
        assert left == await talk.stored("assistant") == ["".join(WORDS[:5])]
        await expect(talk.status).to_contain_text("Ready")
