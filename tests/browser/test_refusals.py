"""What the page says when something cannot be, and what to do then."""

import re
from dataclasses import replace

import pytest
from playwright.async_api import expect

from storage.audit import COMMAND
from tests.app.ai.two_servers import another_server
from tests.browser.cable import cable_to
from tests.browser.conftest import Visit
from tests.browser.guard import Guard
from tests.browser.talking import Talking

# What Chromium writes into the console by itself.
ANSWERED = "the server responded with a status of {}"


REFUSES_LIVE = """(answer) => {
    const [page] = performance.getEntriesByType("navigation");
    const ask = window.fetch.bind(window);
    performance.getEntriesByType = () => [{ ...page.toJSON(), nextHopProtocol: "h2" }];
    window.fetch = async (url, options = {}) => {
        if (!(options.body instanceof ReadableStream)) return ask(url, options);
        const reader = options.body.getReader();
        for (let pieces = 0; pieces < 3; pieces += 1) await reader.read();
        await reader.cancel("refused");
        const headers = { "Content-Type": "application/json" };
        if (answer.wait_s) headers["Retry-After"] = String(answer.wait_s);
        return new Response(JSON.stringify({ error: answer.error }), { status: answer.status, headers });
    };
}"""
"""Makes the page believe that it came over HTTP/2, and a body refused while it is sent."""
FORBIDS_STORAGE = """
for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { get: () => { throw new DOMException("blocked", "SecurityError"); } });
}
"""


def saying(*words: str) -> re.Pattern[str]:
    """All these words, in any order."""
    return re.compile("".join(f"(?=.*{word})" for word in words), re.IGNORECASE | re.DOTALL)


async def test_who_refuses_the_microphone_is_told_how_to_allow_it(visit: Visit) -> None:
    talk = await visit(permissions=[])
    await talk.open("scripted-text")
    await talk.press(talk.hold)
    await expect(talk.alert).to_have_text(saying("not allowed for this page", "at the address bar"))
    await talk.page.mouse.up()
    await talk.say("Hello")
    await talk.answered()
    await expect(talk.alert).to_have_count(0)


async def test_who_was_not_heard_is_told_so(talk: Talking, say, ear: str) -> None:
    await talk.open(await say("Pardon?", recognition="deaf"))
    await talk.press(talk.hold)
    await talk.something_is_said()
    await talk.page.mouse.up()
    await expect(talk.alert).to_have_text(saying("no speech was heard", "a little closer to the microphone"))
    await expect(talk.status).to_contain_text("Ready")


async def test_a_server_that_shuts_down_says_when_to_come_again(visit: Visit, settings, guard: Guard) -> None:
    async with another_server(settings) as leaving:
        talk = await visit(leaving)
        await talk.open("scripted-text")
        guard.expected.append(ANSWERED.format(503))
        await leaving.services.supervisor.drain(0)
        await talk.say("Hello")
        await expect(talk.alert).to_have_text(saying("being stopped or restarted", "try again in"))


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
    await expect(talk.alert).to_have_text(saying("the answer broke off", "or choose another strategy"))
    await expect(talk.status).to_contain_text("Ready")


async def test_where_no_vendor_answers_the_attempts_are_shown(talk: Talking, put, account) -> None:
    await put("conversation", "broken", {"chat": {"account": account, "model": "refuse:503"}})
    await talk.open("broken")
    await talk.say("Tell me a story")
    await expect(talk.alert).to_have_text(saying("no strategy could answer", "look inside to see why"))
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


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            {"status": 400, "error": {"error_type": "account.invalid_session", "message": "no such session"}},
            ("your session expired. you are logged in again", "your message was not sent. try again"),
        ),
        (
            {"status": 503, "wait_s": 7, "error": {"error_type": "internal", "message": "the server is full"}},
            ("at its limit of conversations", "try again in 7 seconds"),
        ),
    ],
    ids=["session", "full"],
)
async def test_who_is_refused_while_speaking_is_told_so_and_may_send_it_again(
    talk: Talking, say, ear: str, answer, words
) -> None:
    await talk.open(await say("Tokyo.", recognition=ear))
    session = talk.token
    await talk.page.evaluate(REFUSES_LIVE, answer)
    await talk.press(talk.hold)
    await talk.something_is_said()
    await expect(talk.alert).to_have_text(saying(*words))
    await talk.page.mouse.up()
    await expect(talk.hold).to_have_attribute("aria-pressed", "false")
    await expect(talk.alert).to_have_text(saying(*words))
    await expect(talk.answer).to_have_attribute("data-state", "failed")
    await talk.button("Try again").click()
    await talk.was_heard()
    assert await talk.answered() == ["Tokyo."]
    await expect(talk.answer).to_have_count(1)
    assert (talk.token != session) == (answer["status"] == 400)


async def test_an_app_that_wants_signed_requests_is_told_what_its_page_needs(
    talk: Talking, server, guard: Guard
) -> None:
    await server.services.configs.put(
        "signed", "apps", "default", {"playground": True}, author="test", origin=COMMAND
    )
    guard.expected.append(ANSWERED.format(r"\d{3}"))
    await talk.page.goto(f"{server.url}/?app=signed")
    await expect(talk.alert).to_have_text(saying("requires signed requests", "turn require_sign off"))
    await expect(talk.alert).not_to_contain_text("strategy")


async def test_where_nothing_may_be_kept_the_page_works_for_the_visit(talk: Talking) -> None:
    await talk.page.add_init_script(FORBIDS_STORAGE)
    await talk.open("scripted-text")
    await expect(talk.page.get_by_text(saying("does not let the page store data", "a new user"))).to_be_visible()
    await talk.say("The sea is grey")
    await talk.answered()
    await talk.say("What did I say?")
    assert await talk.answered() == ["Earlier you said: The sea is grey"]


async def test_an_answer_that_was_altered_on_its_way_is_found_out(visit: Visit, server, say) -> None:
    async with cable_to(server.url) as cable:
        talk = await visit(replace(server, url=cable.url))
        await talk.open(await say("By noon every boat was back."))
        cable.altered = (b"boat", b"bolt")
        await talk.say("Tell me a story")
        assert await talk.answered() == ["By noon every bolt was back."]
        await talk.verdict("Digest differs")
