"""What the page says when something cannot be, and what to do then."""

import re

from playwright.async_api import expect

from tests.app.ai.two_servers import another_server
from tests.browser.conftest import Visit
from tests.browser.guard import Guard
from tests.browser.talking import Talking

# What Chromium writes into the console by itself.
ANSWERED = "the server responded with a status of {}"


def saying(*words: str) -> re.Pattern[str]:
    """All these words, in any order."""
    return re.compile("".join(f"(?=.*{word})" for word in words), re.IGNORECASE | re.DOTALL)


async def test_who_refuses_the_microphone_is_told_how_to_allow_it(visit: Visit) -> None:
    talk = await visit(permissions=[])
    await talk.open("scripted-text")
    await talk.press(talk.hold)
    await expect(talk.alert).to_have_text(saying("microphone", "allow"))
    await talk.page.mouse.up()
    await talk.say("Hello")
    await talk.answered()
    await expect(talk.alert).to_have_count(0)


async def test_who_was_not_heard_is_told_so(talk: Talking, say, ear: str) -> None:
    await talk.open(await say("Pardon?", recognition="deaf"))
    await talk.press(talk.hold)
    await talk.something_is_said()
    await talk.page.mouse.up()
    await expect(talk.alert).to_have_text(saying("no speech|nothing|no words", "again|closer|louder"))
    await expect(talk.status).to_contain_text("Ready")


async def test_a_server_that_shuts_down_says_when_to_come_again(visit: Visit, settings, guard: Guard) -> None:
    async with another_server(settings) as leaving:
        talk = await visit(leaving)
        await talk.open("scripted-text")
        guard.expected.append(ANSWERED.format(503))
        await leaving.services.supervisor.drain(0)
        await talk.say("Hello")
        await expect(talk.alert).to_have_text(saying("server", "shut|restart|stop", "again"))


async def test_who_is_no_longer_logged_in_is_logged_in_again_and_told(talk: Talking, guard: Guard) -> None:
    await talk.open("scripted-text")
    await talk.say("The sea is grey")
    await talk.answered()
    expired = talk.token
    headers = {"X-Service-Session-Token": expired}
    async with talk.server.http.post(f"{talk.server.url}/bp/user/logout", headers=headers) as response:
        assert response.status == 200, await response.text()
    guard.expected.append(ANSWERED.format(400))
    await talk.say("What did I say?")
    assert await talk.answered() == ["Earlier you said: The sea is grey"]
    assert talk.token != expired
    await expect(talk.page.get_by_text(saying("session", "expired|ended"))).to_be_visible()


async def test_an_answer_that_breaks_off_keeps_what_was_said(talk: Talking, put, account) -> None:
    await put("conversation", "cut", {"chat": {"account": account, "model": "cut:Once upon a time"}})
    await talk.open("cut")
    await talk.say("Tell me a story")
    assert await talk.answered("failed") == ["Once upon a time"]
    await expect(talk.alert).to_have_text(saying("broke off|cut", "again"))
    await expect(talk.status).to_contain_text("Ready")


async def test_where_no_vendor_answers_the_attempts_are_shown(talk: Talking, put, account) -> None:
    await put("conversation", "broken", {"chat": {"account": account, "model": "refuse:503"}})
    await talk.open("broken")
    await talk.say("Tell me a story")
    await expect(talk.alert).to_have_text(saying("again|another strategy"))
    inside = await talk.look_inside()
    await expect(inside).to_contain_text(saying("broken", "answered 503"))
    await expect(talk.answer).not_to_have_attribute("data-state", "complete")


async def test_another_strategy_answers_where_that_is_wanted(talk: Talking, put, account) -> None:
    await put("conversation", "a-broken", {"chat": {"account": account, "model": "refuse:400"}})
    await put("conversation", "a-sound", {"chat": {"account": account, "model": "say:Here I am"}})
    await talk.open("a-broken")
    await talk.page.get_by_role("checkbox", name="fall back").check()
    await talk.say("Is anybody there?")
    assert await talk.answered() == ["Here I am"]
    inside = await talk.look_inside()
    await expect(inside).to_contain_text(saying("a-broken", "answered 400", "a-sound answered"))


async def test_a_message_is_sent_when_the_network_is_there_again(talk: Talking, guard: Guard) -> None:
    await talk.open("scripted-text")
    await talk.page.context.set_offline(True)
    guard.expected.append("ERR_INTERNET_DISCONNECTED")
    await talk.say("Hello")
    await expect(talk.status).to_contain_text("Reconnecting")
    await talk.page.context.set_offline(False)
    await talk.answered()
    assert len(await talk.kept("user")) == 1
