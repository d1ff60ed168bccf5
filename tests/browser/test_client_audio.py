"""The audio of the TypeScript client in Chromium: holding to talk, and talking without hands."""

import re
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Request, Route
from yarl import URL

from tests.browser.chromium import running_chromium
from tests.browser.client_page import open_client, open_example, shown, until
from tests.browser.conftest import Visit
from tests.browser.talk_page import TalkPage
from tests.clients.typescript.conftest import CLIENT
from tests.running.servers import Server

STORY = """\
The train left before the sun rose.

A dog ran beside it for a while."""
LONG_STORY = "\n\n".join([STORY] * 8)
"""It takes half a minute, so that a busy machine does not play it to its end before the user interrupts it."""
HEARD_MS = 1_500
PAUSE_S = 3
SECONDS = re.compile(r"[0-9]\.\d seconds")
ASKED = """() => {
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (constraints) => {
        const stream = await open(constraints);
        const { echoCancellation, noiseSuppression, autoGainControl } = stream.getAudioTracks()[0].getSettings();
        window.asked = { ...constraints.audio };
        window.track = stream.getAudioTracks()[0];
        window.granted = { echoCancellation, noiseSuppression, autoGainControl };
        return stream;
    };
}"""
UNPLUGGED = """async () => {
    await voice.startHandsFree();
    track.dispatchEvent(new Event("ended"));
}"""
DETECTED = """async (audio) => {
    async function* pieces() { yield new Uint8Array(audio); }
    const refused = [];
    for (const liveUpload of [true, false]) {
        const client = new parley.ParleyClient(location.origin, "default", { liveUpload });
        const options = { strategies: ["one"], languageCode: "en-US", turnDetection: {} };
        const turn = (audio) => client.converse({ ...options, audio });
        turn(new Uint8Array(audio)); // It is complete, so its end is in what is sent.
        try { turn(pieces()); } catch (error) { refused.push(String(error)); }
    }
    return refused;
}"""
LISTENED_TO = """async () => {
    await voice.microphone.open();
    window.ignore = voice.microphone.listen(() => {});
}"""
UTTERED = """async () => {
    const calls = [];
    const player = { playing: true, heardMs: 700, stop: () => calls.push("stop") };
    const microphone = new parley.Microphone({ keepOpenMs: 1 });
    const loadDetector = async () => {
        await new Promise((loaded) => setTimeout(loaded, 500)); // The microphone closes meanwhile.
        return parley.SileroVoiceDetector.load();
    };
    const recording = await new Promise((onUtterance, failed) => {
        new parley.HandsFree({ microphone, player, onUtterance, loadDetector }).start().catch(failed);
    });
    await recording.ended;
    await microphone.close();
    return [calls, recording.seconds];
}"""
TOUCHED = """async () => {
    await voice.microphone.open();
    await new Promise((resolve) => setTimeout(resolve)); // What was heard until now is no part of the question.
    await voice.hold();
    await voice.release();
}"""
PRESSED_TWICE = """async () => {
    const button = new parley.HoldToTalk(new parley.Microphone());
    const first = button.press().catch((error) => error.kind);
    await button.release();
    const recording = await button.press();
    const held = button.held;
    await button.release();
    const read = await (async () => { for await (const _ of recording); })().catch((error) => error.kind);
    return [await first, held, button.held, read];
}"""
BLOCKED = """() => {
    HTMLMediaElement.prototype.play = async () => { throw new DOMException("no gesture", "NotAllowedError"); };
}"""
LEVELS = """async () => {
    const levels = [];
    while (voice.player.playing) {
        if (voice.player.state === "playing") levels.push(voice.player.level);
        await new Promise(requestAnimationFrame);
    }
    return levels;
}"""


@pytest.mark.parametrize(("audio_format", "streams"), [("mp3", True), ("mp3", False), ("wav", True)])
async def test_a_question_is_held_and_its_answer_heard(
    talk: TalkPage, fixed_strategy, put, duration_recognition: str, audio_format: str, *, streams: bool
) -> None:
    await put("speech", "voice", {"account": "local-audio", "model": "espeak", "audio_format": audio_format})
    strategy = await fixed_strategy(STORY, speech="voice", recognition=duration_recognition)
    flags = {"echoCancellation": False, "noiseSuppression": True, "autoGainControl": False}
    page = await open_client(talk, strategies=[strategy], microphone=flags)
    await page.evaluate(ASKED)
    if not streams:
        await page.evaluate("() => delete window.MediaSource")
    await page.evaluate("() => voice.hold()")
    await until(page, "voice.microphone.level > 0.1")
    await page.evaluate("() => seen.speechEnded")
    await page.evaluate("() => voice.release()")
    await until(page, "voice.player.state === 'playing'")
    levels = await page.evaluate(LEVELS)
    await until(page, "voice.state === 'idle'")
    found = await shown(page)
    assert found["states"] == ["listening", "thinking", "speaking", "idle"]
    assert (found["ends"], found["errors"]) == (["stop"], [])
    [heard] = found["inputs"]
    assert SECONDS.fullmatch(heard)
    assert await page.evaluate("() => [asked, granted]") == [{"channelCount": 1, **flags}, flags]
    assert max(levels) > 0.2 > min(levels)
    assert await page.evaluate("() => voice.player.heardMs") > 2_000
    assert await page.evaluate("() => shown.turns[0].text") == STORY


async def test_a_touch_is_no_question(talk: TalkPage, fixed_strategy) -> None:
    page = await open_client(talk, strategies=[await fixed_strategy(STORY)])
    await page.evaluate(TOUCHED)
    await until(page, "shown.errors.length > 0")
    assert await shown(page) == {
        "states": ["listening", "idle"],
        "inputs": [],
        "ends": [],
        "errors": ["short"],
        "turns": 0,
    }


async def test_only_the_last_press_of_a_button_records(talk: TalkPage) -> None:
    page = await open_client(talk, strategies=["one"])
    assert await page.evaluate(PRESSED_TWICE) == ["early", True, False, "short"]


async def test_an_answer_that_the_browser_did_not_play_is_kept(talk: TalkPage, fixed_strategy, put) -> None:
    """The user may have read it."""
    await put("speech", "voice", {"account": "local-audio", "model": "espeak", "audio_format": "mp3"})
    page = await open_client(talk, strategies=[await fixed_strategy(STORY, speech="voice")])
    await page.evaluate(BLOCKED)
    await page.evaluate("() => { voice.say('Tell me a story'); }")
    await until(page, "voice.player.state === 'blocked' && shown.ends.length > 0")
    async with page.expect_request(lambda request: request.method == "DELETE") as canceled:
        await page.evaluate("() => voice.interrupt()")
    assert "heard_ms" not in URL((await canceled.value).url).query


async def test_an_utterance_leaves_the_answer_to_the_app(talk: TalkPage) -> None:
    """The app interrupts it, because only the app knows an answer that is not played yet."""
    page = await open_client(talk, strategies=["one"])
    calls, seconds = await page.evaluate(UTTERED)
    assert calls == []
    assert seconds > 1


async def test_a_page_cannot_let_the_server_end_its_recording(talk: TalkPage) -> None:
    """It reads no response while it sends, also where it can upload live."""
    page = await open_client(talk, strategies=["one"])
    refused = await page.evaluate(DETECTED, [0, 0])
    assert [re.match(r"TypeError: turnDetection .* hands-free", error) is not None for error in refused] == [
        True,
        True,
    ]


async def test_a_question_that_is_given_up_is_not_asked(talk: TalkPage, fixed_strategy) -> None:
    page = await open_client(talk, strategies=[await fixed_strategy(STORY)])
    await page.evaluate("() => voice.hold()")
    await until(page, "shown.turns.length > 0")
    await page.evaluate("() => voice.interrupt()")
    await until(page, "voice.state === 'idle'")
    await page.evaluate("() => voice.release()")
    await page.evaluate("() => voice.say('Hello')")
    found = await shown(page)
    assert (found["inputs"], found["ends"], found["errors"], found["turns"]) == (["Hello"], ["stop"], [], 2)
    assert [message["role"] for message in await talk.history()] == ["user", "assistant"]
    await page.evaluate("() => voice.close()")


async def test_files_that_a_bundler_has_left_behind_are_named(talk: TalkPage) -> None:
    page = await open_client(talk, strategies=["one"], microphone={"workletUrl": "/lost/worklet.js"})
    await page.route("**/silero.bin", _a_page)
    weights = await page.evaluate("() => parley.SileroVoiceDetector.load().catch(({ message }) => message)")
    worklet = await page.evaluate("() => voice.microphone.open().catch(({ message }) => message)")
    see = 'see "Bundlers" in the README of parley-client'
    assert weights == f"{talk.server.url}/static/client/silero.bin was answered with HTML; {see}"
    assert worklet == f"microphone: worklet.js cannot be loaded from /lost/worklet.js; {see}"


async def _a_page(route: Route) -> None:
    """Answer as development servers do if they do not know an address."""
    await route.fulfill(body="<!doctype html><title>An app</title>", content_type="text/html")


async def test_a_microphone_that_is_not_allowed_is_reported(visit: Visit, fixed_strategy) -> None:
    page = await open_client(await visit(permissions=[]), strategies=[await fixed_strategy(STORY)])
    await page.evaluate("() => voice.hold()")
    await page.evaluate("() => voice.startHandsFree()")
    found = await shown(page)
    assert (found["errors"], found["states"]) == (["refused", "refused"], [])
    assert not await page.evaluate("() => voice.handsFree")


async def test_the_microphone_closes_when_nobody_uses_it_and_a_lost_one_is_reported(
    talk: TalkPage, fixed_strategy
) -> None:
    page = await open_client(talk, strategies=[await fixed_strategy(STORY)], microphone={"keepOpenMs": 1})
    await page.evaluate(ASKED)
    await page.evaluate(UNPLUGGED)
    assert (await shown(page))["errors"] == ["lost"]
    assert not await page.evaluate("() => voice.handsFree")
    await page.evaluate(LISTENED_TO)
    await until(page, "voice.microphone.level > 0")
    assert await page.evaluate("() => track.readyState") == "live"
    await page.evaluate("() => ignore()")
    await until(page, "track.readyState === 'ended'")
    assert await page.evaluate("() => voice.microphone.level") == 0


async def test_the_example_of_the_readme_listens_and_speaks(talk: TalkPage) -> None:
    readme = (CLIENT / "README.md").read_text().partition("## Voice in the browser")[2]
    html, script = (re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)[0] for language in ("html", "js"))
    await open_example(talk, html, script)
    await talk.page.wait_for_function("talk.onpointerdown && listen.onclick")
    button = talk.page.locator("#talk")
    await talk.press(button)
    await talk.speech_ended()
    await talk.page.mouse.move(600, 500)  # The finger slips off the button.
    await talk.page.mouse.up()
    await talk.page.wait_for_function("document.title === 'speaking'")
    await talk.page.wait_for_function("document.title === 'idle'")
    assert await talk.page.locator("#answer").text_content() == "\n\n".join(await talk.stored("assistant"))

    assert await button.evaluate("button => getComputedStyle(button).touchAction") == "none", "it would scroll"
    await talk.press(button)
    await talk.page.wait_for_function("document.title === 'listening'")
    await button.dispatch_event("pointercancel")  # The system takes the finger, for example for a call.
    await talk.page.wait_for_function("document.title !== 'listening'")
    await talk.page.mouse.up()


@pytest_asyncio.fixture(loop_scope="session")
async def talkative(microphone: Path, server: Server, tmp_path: Path) -> AsyncIterator[TalkPage]:
    """A page with somebody at its microphone who asks again and again, and pauses for the answers."""
    with wave.open(str(microphone)) as spoken, wave.open(str(tmp_path / "again.wav"), "wb") as again:
        again.setparams(spoken.getparams())
        again.writeframes(spoken.readframes(spoken.getnframes()) + bytes(2 * PAUSE_S * spoken.getframerate()))
    async with running_chromium(tmp_path / "again.wav", again=True) as browser:
        context = await browser.new_context(permissions=["microphone"])
        talk = TalkPage(await context.new_page(), server)
        talk.watch()
        yield talk


async def test_questions_without_hands_interrupt_the_answer(
    talkative: TalkPage, fixed_strategy, duration_recognition: str
) -> None:
    strategy = await fixed_strategy(LONG_STORY, speech="local", recognition=duration_recognition)
    page = await open_client(talkative, strategies=[strategy])
    async with page.expect_request(heard_something):
        await page.evaluate("() => voice.startHandsFree()")
    asked = len((await shown(page))["inputs"])
    await until(page, f"shown.inputs.length > {asked} && voice.player.heardMs > {HEARD_MS}")
    await page.evaluate("() => { voice.stopHandsFree(); return voice.interrupt(); }")
    await until(page, "shown.ends.length === shown.turns.length")
    found = await shown(page)
    assert found["errors"] == []
    assert len(found["inputs"]) >= 2
    assert all(SECONDS.fullmatch(heard) for heard in found["inputs"])
    assert {"listening", "thinking", "speaking"} <= {*found["states"]}
    records = (await page.evaluate("() => client.history(voice.conversationId)"))["conversation_records"]
    answers = [spoken_by("assistant", record) for record in records]
    assert {record["status"] for record in records} == {"interrupted"}
    assert all(LONG_STORY.startswith(answer) and answer != LONG_STORY for answer in answers)
    assert sum(answer != "" for answer in answers) >= 2
    assert not await page.evaluate("() => voice.handsFree")


def heard_something(request: Request) -> bool:
    """Return whether this interrupts an answer of which something was heard."""
    return request.method == "DELETE" and int(URL(request.url).query.get("heard_ms", 0)) > 0


def spoken_by(role: str, record: dict[str, Any]) -> str:
    items = [item for message in record["content"] if message["role"] == role for item in message["content"]]
    return "\n\n".join(item["text"] for item in items if item["type"] == "text")
