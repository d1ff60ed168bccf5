"""The transcript: nothing moves while an answer grows, and the reader decides what is in sight."""

from playwright.async_api import Locator, expect

from tests.browser.conftest import Visit
from tests.browser.talk_page import TalkPage

_TOPS = (
    "() => [...document.querySelectorAll('article')].map((each) => Math.round(each.getBoundingClientRect().top))"
)
_FROM_END = "(log) => Math.round(log.scrollHeight - log.scrollTop - log.clientHeight)"


def log_of(talk: TalkPage) -> Locator:
    return talk.page.get_by_role("log", name="Conversation")


async def test_nothing_moves_while_an_answer_grows(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    before = await talk.page.evaluate(_TOPS)
    for sentence in ("Once upon a time there was a harbour.\n\n", "A bell rang."):
        controlled_vendor.send(sentence)
        await expect(talk.answer).to_contain_text(sentence.strip())
        assert await talk.page.evaluate(_TOPS) == before
    height = (await talk.answer.bounding_box())["height"]
    controlled_vendor.finish()
    await talk.answered()
    assert await talk.page.evaluate(_TOPS) == before
    assert (await talk.answer.bounding_box())["height"] == height


async def test_a_reader_of_earlier_messages_is_not_disturbed(
    visit: Visit, controlled_vendor, controlled_strategy: str
) -> None:
    talk = await visit(viewport={"width": 1_280, "height": 480})
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    controlled_vendor.send(*["A bell rang.\n\n"] * 20, "Then ")
    await expect(talk.answer).to_contain_text("Then")
    log = log_of(talk)
    assert await log.evaluate(_FROM_END) == 0
    await log.evaluate("(log) => (log.scrollTop = 40)")
    await expect(talk.button("New messages")).to_have_count(0)
    controlled_vendor.send("another one.\n\n", "And another.")
    await expect(talk.answer).to_contain_text("And another.")
    assert await log.evaluate("(log) => log.scrollTop") == 40
    await talk.button("New messages").click()
    assert await log.evaluate(_FROM_END) == 0
    await expect(talk.button("New messages")).to_have_count(0)
    controlled_vendor.send("\n\nThe end.")
    await expect(talk.answer).to_contain_text("The end.")
    assert await log.evaluate(_FROM_END) == 0
    controlled_vendor.finish()
    await talk.answered()


async def test_the_actions_of_an_answer_appear_where_they_are_needed(visit: Visit, fixed_strategy) -> None:
    """At a desk they are shown for the last answer and the one that is pointed at, and on a phone always."""
    strategy = await fixed_strategy("Hello there.")
    for options, shown in (({}, "0"), ({"is_mobile": True, "has_touch": True}, "1")):
        talk = await visit(permissions=["clipboard-read", "clipboard-write"], **options)
        await talk.open(strategy)
        for _ in range(2):
            await talk.say("Hello")
            await talk.answered()
        first, last = await talk.page.locator(".answer-actions").all()
        await talk.message.hover()
        await expect(first).to_have_css("opacity", shown)
        await expect(last).to_have_css("opacity", "1")
        if not options:
            await first.locator("..").hover()
            await expect(first).to_have_css("opacity", "1")


async def test_an_answer_opens_its_own_details(talk: TalkPage, fixed_strategy) -> None:
    await talk.open(await fixed_strategy("Hello there."))
    for said in ("One", "Two"):
        await talk.say(said)
        await talk.answered()
    await talk.close_details()
    first = talk.page.get_by_role("article", name="Parley").first
    await first.hover()
    await first.get_by_role("button", name="Look inside this answer").click()
    await expect(talk.details).to_contain_text("1 of 2")
