"""Error messages of the page say what happened and what to do."""

import re
from dataclasses import replace
from typing import Any

from playwright.async_api import expect

from streams.wire.codec import dumps
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Visit
from tests.browser.controlled_vendor import ControlledVendor
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage
from tests.browser.unreliable_proxy import proxy_to
from tests.running.another_server import another_server

HINT_MS = 6_000
# Chromium writes this to the console.
ANSWERED = "the server responded with a status of {}"


REFUSES_LIVE = """((answer) => {
    const ask = window.fetch.bind(window);
    performance.getEntriesByType = () => [{ nextHopProtocol: "h2" }];
    let refusals = 1;
    window.fetch = async (url, options = {}) => {
        if (!(options.body instanceof ReadableStream)) return ask(url, options);
        if (refusals === 0) return ask(url, { ...options, body: await new Response(options.body).blob() });
        refusals -= 1;
        const reader = options.body.getReader();
        for (let pieces = 0; pieces < 3; pieces += 1) await reader.read();
        await reader.cancel("refused");
        const headers = { "Content-Type": "application/json" };
        if (answer.wait_s) headers["Retry-After"] = String(answer.wait_s);
        return new Response(JSON.stringify({ error: answer.error }), { status: answer.status, headers });
    };
})"""
"""Makes the page assume HTTP/2, and refuses the first request body that is sent while the user speaks."""
FORBIDS_STORAGE = """
for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, { get: () => { throw new DOMException("blocked", "SecurityError"); } });
}
"""


def containing(*words: str) -> re.Pattern[str]:
    """Return a pattern that matches texts with all these words, in any order."""
    return re.compile("".join(f"(?=.*{word})" for word in words), re.IGNORECASE | re.DOTALL)


async def refuse_live(talk: TalkPage, answer: dict[str, Any]) -> None:
    await talk.page.add_init_script(f"{REFUSES_LIVE}({dumps(answer).decode()})")


async def test_the_page_explains_how_to_allow_the_microphone(visit: Visit) -> None:
    talk = await visit(permissions=[])
    await talk.open("scripted-text")
    await talk.press(talk.hold)
    await expect(talk.alert).to_have_text(containing("not allowed for this page", "at the address bar"))
    await talk.page.mouse.up()
    await talk.say("Hello")
    await talk.answered()
    await expect(talk.alert).to_have_count(0)


async def test_the_user_is_told_if_no_speech_was_recognized(
    talk: TalkPage, fixed_strategy, duration_recognition: str
) -> None:
    await talk.open(await fixed_strategy("Pardon?", recognition="silent"))
    await talk.press(talk.hold)
    await talk.some_speech_recorded()
    await talk.page.mouse.up()
    await expect(talk.alert).to_have_text(containing("no speech was heard", "a little closer to the microphone"))
    await expect(talk.status).to_contain_text("Ready")


async def test_the_page_says_when_to_retry_during_a_shutdown(
    visit: Visit, settings, page_faults: PageFaults
) -> None:
    async with another_server(settings) as leaving:
        talk = await visit(leaving)
        await talk.open("scripted-text")
        page_faults.expected.append(ANSWERED.format(503))
        await leaving.services.supervisor.drain(0)
        await talk.say("Hello")
        await expect(talk.alert).to_have_text(containing("being stopped or restarted", "try again in"))


async def test_an_expired_session_is_renewed_with_a_notice(talk: TalkPage, page_faults: PageFaults) -> None:
    await talk.open("scripted-text")
    await talk.say("The sea is grey")
    await talk.answered()
    expired = talk.token
    headers = {"X-Service-Session-Token": expired}
    async with talk.server.http.post(f"{talk.server.url}/bp/user/logout", headers=headers) as response:
        assert response.status == 200, await response.text()
    page_faults.expected.append(ANSWERED.format(400))
    await talk.say("What did I say?")
    assert await talk.answered() == ["Earlier you said: The sea is grey"]
    assert talk.token != expired
    await expect(talk.page.get_by_text(containing("session", "expired|ended"))).to_be_visible()


async def test_an_interrupted_answer_keeps_its_text(talk: TalkPage, put, account) -> None:
    await put("conversation", "cut", {"chat": {"account": account, "model": "cut:Once upon a time"}})
    await talk.open("cut")
    await talk.say("Tell me a story")
    assert await talk.answered("failed") == ["Once upon a time"]
    await expect(talk.alert).to_have_text(containing("the answer broke off", "or choose another strategy"))
    await expect(talk.status).to_contain_text("Ready")


async def test_attempts_are_shown_if_no_vendor_answers(talk: TalkPage, put, account) -> None:
    await put("conversation", "broken", {"chat": {"account": account, "model": "refuse:503"}})
    await talk.open("broken")
    await talk.say("Tell me a story")
    await expect(talk.alert).to_have_text(containing("no strategy could answer", "vendor had an internal error"))
    details = await talk.open_details()
    await expect(details).to_contain_text(containing("broken", "answered 503"))
    await expect(talk.answer).not_to_have_attribute("data-state", "complete")


async def test_another_strategy_answers_if_fallback_is_enabled(talk: TalkPage, put, account) -> None:
    await put("conversation", "a-broken", {"chat": {"account": account, "model": "refuse:400"}})
    await put("conversation", "a-sound", {"chat": {"account": account, "model": "say:Here I am"}})
    await talk.open("a-broken")
    async with talk.settings():
        await talk.page.get_by_role("checkbox", name="fall back").check()
    await talk.say("Is anybody there?")
    assert await talk.answered() == ["Here I am"]
    details = await talk.open_details()
    await expect(details).to_contain_text(containing("a-broken", "answered 400", "a-sound.*succeeded"))


async def test_a_message_is_sent_when_the_network_is_available_again(
    talk: TalkPage, page_faults: PageFaults
) -> None:
    await talk.open("scripted-text")
    await talk.page.context.set_offline(True)
    page_faults.expected.append("ERR_INTERNET_DISCONNECTED")
    await talk.say("Hello")
    await expect(talk.status).to_contain_text("Reconnecting")
    await talk.page.context.set_offline(False)
    await talk.answered()
    assert len(await talk.stored("user")) == 1


async def test_a_message_refused_while_speaking_can_be_sent_again(
    talk: TalkPage, fixed_strategy, duration_recognition: str
) -> None:
    error = {"error_type": "internal", "message": "the server is full"}
    await refuse_live(talk, {"status": 503, "wait_s": 7, "error": error})
    await talk.open(await fixed_strategy("Tokyo.", recognition=duration_recognition))
    words = ("at its limit of conversations", "try again in 7 seconds")
    await talk.press(talk.hold)
    await talk.some_speech_recorded()
    await expect(talk.alert).to_have_text(containing(*words))
    await talk.page.mouse.up()
    await expect(talk.hold).to_have_attribute("aria-pressed", "false")
    await expect(talk.alert).to_have_text(containing(*words))
    await expect(talk.answer).to_have_attribute("data-state", "failed")
    await talk.button("Try again").click()
    await talk.duration_recognized()
    assert await talk.answered() == ["Tokyo."]
    await expect(talk.answer).to_have_count(1)


async def test_a_session_that_expires_while_the_user_speaks_loses_nothing(
    talk: TalkPage, fixed_strategy, duration_recognition: str
) -> None:
    error = {"error_type": "account.invalid_session", "message": "no such session"}
    await refuse_live(talk, {"status": 400, "error": error})
    await talk.open(await fixed_strategy("Tokyo.", recognition=duration_recognition))
    expired = talk.token
    await talk.press(talk.hold)
    await talk.some_speech_recorded()
    await expect(talk.page.get_by_text("Your session expired.")).to_be_visible()
    await talk.page.mouse.up()
    await talk.duration_recognized()
    assert await talk.answered() == ["Tokyo."]
    assert talk.token != expired
    await expect(talk.alert).to_have_count(0)


async def test_the_page_explains_what_an_app_with_signed_requests_needs(
    talk: TalkPage, server, page_faults: PageFaults, put
) -> None:
    await put("apps", "default", {"playground": True}, app_id="signed")
    page_faults.expected.append(ANSWERED.format(r"\d{3}"))
    await talk.page.goto(f"{server.url}/?app=signed")
    await expect(talk.alert).to_have_text(containing("requires signed requests", "turn require_sign off"))
    await expect(talk.alert).not_to_contain_text("strategy")


async def test_in_production_users_get_no_advice_for_operators(
    visit: Visit, settings, page_faults: PageFaults, put, vendor
) -> None:
    for app_id in ("signed", "tried"):
        await put("apps", "default", {"playground": True}, app_id=app_id)
    await put("auth", "default", {"sign_keys": [{"id": "app", "key": "a key of the app"}]}, app_id="signed")
    await put("auth", "default", {"require_sign": False, "anonymous_login": True}, app_id="tried")
    await put("vendor_accounts", "chat", {"platform": "vendor_b_llm", "base_url": vendor.url}, app_id="tried")
    await put("conversation", "keyless", {"chat": {"account": "chat", "model": "refuse:401"}}, app_id="tried")
    async with another_server(settings, env="production") as production:
        talk = await visit(production)
        page_faults.expected.append(ANSWERED.format(r"\d{3}"))
        await talk.page.goto(f"{production.url}/?app=signed")
        await expect(talk.alert).to_have_text(containing("cannot be used with this app", "the app itself"))
        await expect(talk.alert).not_to_contain_text(re.compile("sign|config|key"))
        await talk.page.goto(f"{production.url}/?app=tried")
        await talk.ready()
        await talk.say("Hello")
        await expect(talk.alert).to_have_text(
            containing("no answer at the moment", "refused the key", "another strategy")
        )
        await expect(talk.alert).not_to_contain_text(re.compile("vendor account|answered 401"))
        details = await talk.open_details()
        await expect(details).to_contain_text(
            "The vendor refused the key. Choose another strategy in the settings."
        )


async def test_the_page_works_without_browser_storage(talk: TalkPage) -> None:
    await talk.page.add_init_script(FORBIDS_STORAGE)
    await talk.open("scripted-text")
    await expect(
        talk.page.get_by_text(containing("does not let the page store data", "a new user"))
    ).to_be_visible()
    await talk.say("The sea is grey")
    await talk.answered()
    await talk.say("What did I say?")
    assert await talk.answered() == ["Earlier you said: The sea is grey"]


async def test_an_answer_altered_in_transit_is_detected(visit: Visit, server, fixed_strategy) -> None:
    async with proxy_to(server.url) as proxy:
        talk = await visit(replace(server, url=proxy.url))
        await talk.open(await fixed_strategy("By noon every boat was back."))
        proxy.altered = (b"boat", b"bolt")
        await talk.say("Tell me a story")
        assert await talk.answered() == ["By noon every bolt was back."]
        await talk.check_digest("✗ The answer was altered on its way")


async def test_a_click_instead_of_a_hold_is_answered_by_a_hint_that_goes(talk: TalkPage) -> None:
    await talk.page.clock.install()
    await talk.open()
    await talk.hold.click()
    await expect(talk.alert).to_contain_text("Hold the button")
    await expect(talk.alert).to_have_class("alert hint")
    await check_accessibility(talk.page)
    await keep_picture(talk.page, "talk-hint")
    await talk.page.clock.fast_forward(HINT_MS)
    await expect(talk.alert).to_have_count(0)


async def test_an_answer_whose_session_was_ended_can_be_sent_again(
    talk: TalkPage, controlled_vendor: ControlledVendor, controlled_strategy: str, page_faults: PageFaults
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    controlled_vendor.send("Once upon ")
    await expect(talk.answer).to_contain_text("Once upon")
    headers = {"X-Service-Session-Token": talk.token}
    async with talk.server.http.post(f"{talk.server.url}/bp/user/logout", headers=headers) as response:
        assert response.status == 200
    await expect(talk.alert).to_contain_text("Your session was ended in the middle of this answer. Send it again.")
    page_faults.expected.append(ANSWERED.format(400))
    controlled_vendor.send("The end.")
    controlled_vendor.finish()
    await talk.button("Try again").click()
    await expect(talk.alert).to_have_count(0)
    await expect(talk.answer).to_have_attribute("data-state", "complete")
    await expect(talk.answer).to_contain_text("The end.")
