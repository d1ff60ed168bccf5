"""Spoken answers: playback, mouth shapes and interruptions."""

import asyncio
import base64
from collections import defaultdict
from itertools import pairwise

import pytest
from playwright.async_api import expect
from yarl import URL

from streams.audio.durations import duration_s
from tests.browser.conftest import SPOKEN, Visit
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage
from tests.peers.sse_client import named

STORY = """\
The boats went out with the tide.

Then a bell rang."""
LONG_STORY = "\n\n".join([STORY] * 8)
"""It takes half a minute, so that a busy machine does not play it to its end before the test interrupts it."""
VOICE = {"account": "local-audio", "model": "espeak", "voice": "en-us", "need_viseme": True}
SILENCE_MS = 150
HEARD_MS = 1_500
MAX_FRAMES = 3
"""Within this many frames of the page, it reacts immediately."""

_CLOCK = """async () => {
    const { player } = window.parley;
    const samples = [];
    while (player.playing) {
        samples.push(player.heardMs);
        await new Promise(requestAnimationFrame);
    }
    return [...samples, player.heardMs];
}"""
_REACHED = """async (ms) => {
    while (window.parley.player.heardMs < ms) await new Promise(requestAnimationFrame);
}"""
_SILENT_AFTER = """async (button) => {
    let frames = 0;
    button.click();
    for (; window.parley.player.playing; frames += 1) await new Promise(requestAnimationFrame);
    return frames;
}"""
_MOVED = """async (frames) => {
    const before = window.parley.player.heardMs;
    for (let frame = 0; frame < frames; frame += 1) await new Promise(requestAnimationFrame);
    return window.parley.player.heardMs - before;
}"""

_FELL_SILENT = """async (ms) => {
    const { player } = window.parley;
    for (let from = performance.now(); performance.now() - from < ms; ) {
        if (player.state !== "waiting") from = performance.now();
        await new Promise(requestAnimationFrame);
    }
    return player.heardMs;
}"""
_PICKED_UP = """async () => {
    while (!["blocked", "playing"].includes(window.parley.player.state)) await new Promise(requestAnimationFrame);
}"""
_GAPS = """async () => {
    const { player } = window.parley;
    while (player.playing) await new Promise(requestAnimationFrame);
    return player.gaps;
}"""
_SHOWN_AT = """async (times) => {
    const frames = async (count) => {
        while (count--) await new Promise(requestAnimationFrame);
    };
    const { Mouth } = await import("/static/talk/mouth.js");
    const { html, render } = await import("/static/vendor/preact.js");
    const visemes = [[0, 2, 0], [400, 21, 0], [0, 7, 1], [400, 6, 1]];
    const player = { playing: true, state: "playing", heardMs: 0, startOf: (index) => index * 1000 };
    const place = document.body.appendChild(document.createElement("div"));
    render(html`<${Mouth} player=${player} visemes=${visemes} />`, place);
    const size = () => {
        const { width, height } = place.querySelector(".mouth-dark").getBBox();
        return [Math.round(width), Math.round(height)];
    };
    const drawn = [];
    for (const ms of times) {
        player.heardMs = ms;
        await frames(3);
        for (let before; before !== String(size()); await frames(3)) before = String(size());
        drawn.push(size());
    }
    render(null, place);
    place.remove();
    return drawn;
}"""
_SHAPES = """async () => {
    const mouth = document.querySelector("[aria-label=Mouth]");
    const shapes = new Set();
    for (let frame = 0; frame < 40; frame += 1) {
        shapes.add(mouth.innerHTML);
        await new Promise(requestAnimationFrame);
    }
    return [...shapes];
}"""


async def length_ms(talk: TalkPage) -> float:
    """Return the duration of the answer's audio as sent by the server."""
    audio: dict[int, bytes] = defaultdict(bytes)
    mime_types = set()
    for chunk in named(await talk.events(), "assistant_output_audio_chunk"):
        audio[chunk["index"]] += base64.b64decode(chunk["audio"])
        mime_types.add(chunk.get("mime_type"))
    [mime_type] = mime_types - {None}
    return sum(1000 * (duration_s(paragraph, mime_type) or 0) for paragraph in audio.values())


async def wait_for_playback(talk: TalkPage, ms: int = HEARD_MS) -> None:
    """Wait until `ms` of the answer have been played."""
    await talk.playing()
    await talk.page.evaluate(_REACHED, ms)


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_an_answer_is_played_without_gaps_with_a_moving_mouth(
    talk: TalkPage, fixed_strategy, put, audio_format: str
) -> None:
    await put("speech", "voice", VOICE | {"audio_format": audio_format})
    await talk.open(await fixed_strategy(STORY, speech="voice"))
    await talk.open_details()
    await talk.say("Tell me a story")
    await talk.playing()
    shapes, clock = await asyncio.gather(talk.page.evaluate(_SHAPES), talk.page.evaluate(_CLOCK))
    assert len(shapes) > 10
    assert clock == sorted(clock)
    length = await length_ms(talk)
    assert length > 2_000
    assert clock[-1] == pytest.approx(length, abs=300)
    assert await talk.page.evaluate("() => window.parley.player.gaps") == []
    await expect(talk.status).to_contain_text("Ready")
    await talk.check_digest()


async def test_the_audio_continues_after_a_disconnect(
    talk: TalkPage, controlled_vendor, make_controlled_strategy
) -> None:
    first, second = STORY.split("\n\n")
    await talk.open(await make_controlled_strategy(speech="local"))
    await talk.say("Tell me a story")
    controlled_vendor.send(first + "\n\n")
    await wait_for_playback(talk, 300)
    await talk.disconnect()
    controlled_vendor.send(second)
    controlled_vendor.finish()
    assert await talk.answered() == [first, second]
    clock = await talk.page.evaluate(_CLOCK)
    assert clock[-1] == pytest.approx(await length_ms(talk), abs=300)
    assert await talk.page.evaluate("() => window.parley.player.gaps") == []
    await talk.check_digest()


async def test_an_interrupted_answer_is_cut_to_the_heard_words(talk: TalkPage, fixed_strategy) -> None:
    await talk.open(await fixed_strategy(LONG_STORY, speech="local"))
    await talk.say("Tell me a story")
    await wait_for_playback(talk)
    assert await talk.button("Interrupt").evaluate(_SILENT_AFTER) <= MAX_FRAMES
    left = await talk.answered("interrupted")
    assert await talk.page.evaluate(_MOVED, 20) == 0
    assert "\n\n".join(left) != LONG_STORY
    assert LONG_STORY.startswith("\n\n".join(left))
    assert left == await talk.stored("assistant")
    assert len(" ".join(left).split()) >= 3
    await expect(talk.status).to_contain_text("Ready")
    await expect(talk.button("Interrupt")).to_have_count(0)


async def test_an_answer_can_be_interrupted_during_its_generation(
    talk: TalkPage, controlled_vendor, make_controlled_strategy
) -> None:
    await talk.open(await make_controlled_strategy(speech="local"))
    await talk.say("Tell me a story")
    controlled_vendor.send(LONG_STORY + "\n\n", "And then ")
    await wait_for_playback(talk)
    await talk.button("Interrupt").click()
    left = await talk.answered("interrupted")
    assert LONG_STORY.startswith("\n\n".join(left))
    assert "\n\n".join(left) != LONG_STORY
    assert left == await talk.stored("assistant")
    await controlled_vendor.disconnected.wait()


async def test_an_answer_without_audio_can_be_interrupted(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    controlled_vendor.send("Once upon a time", " there was a")
    await expect(talk.answer).to_contain_text("there was a")
    await talk.button("Interrupt").click()
    left = await talk.answered("interrupted")
    assert left == await talk.stored("assistant") == ["Once upon a time there was a"]
    await controlled_vendor.disconnected.wait()


async def test_starting_to_talk_interrupts_the_answer(talk: TalkPage, fixed_strategy) -> None:
    await talk.open(await fixed_strategy(LONG_STORY, speech="local", recognition="local"))
    await talk.say("Tell me a story")
    await wait_for_playback(talk)
    await talk.press(talk.hold)
    await expect(talk.status).to_contain_text("Listening")
    assert not await talk.page.evaluate("() => window.parley.player.playing")
    left = await talk.answered("interrupted")
    assert LONG_STORY.startswith("\n\n".join(left))
    assert left == await talk.stored("assistant")
    await talk.speech_ended()
    await talk.page.mouse.up()
    await expect(talk.user_message.locator("p")).to_have_text(SPOKEN)
    await talk.answered()
    assert await talk.stored("user") == [SPOKEN]


async def test_the_mouth_stands_still_with_reduced_motion(visit: Visit, fixed_strategy, put) -> None:
    await put("speech", "voice", VOICE)
    talk = await visit(reduced_motion="reduce")
    await talk.open(await fixed_strategy(LONG_STORY, speech="voice"))
    await talk.open_details()
    await talk.say("Tell me a story")
    await talk.playing()
    assert len(await talk.page.evaluate(_SHAPES)) <= 2
    await talk.button("Interrupt").click()
    await talk.answered("interrupted")


async def test_there_are_tools_only_while_there_is_something_to_try(
    talk: TalkPage, controlled_vendor, make_controlled_strategy, put
) -> None:
    await put("speech", "voice", VOICE)
    await talk.open(await make_controlled_strategy(speech="voice"))
    await talk.open_details()
    tools = talk.details.get_by_label("Tools")
    await talk.say("Tell me a story")
    await expect(talk.button("Drop the connection")).to_be_enabled()
    await expect(tools).to_contain_text("Tests that the answer resumes.")
    mouth = tools.get_by_role("figure", name="Mouth shapes of the voice")
    await expect(mouth).to_have_count(0)
    controlled_vendor.send(LONG_STORY)
    controlled_vendor.finish()
    await expect(mouth).to_be_visible()
    await keep_picture(talk.page, "inside-tools")
    await talk.details.get_by_role("tab", name="Events").click()
    await expect(mouth).to_have_count(0)
    await talk.answered()
    await expect(talk.button("Drop the connection")).to_have_count(0)
    await talk.interrupt()
    await expect(tools).to_be_hidden()


async def test_the_mouth_has_the_shape_of_the_current_viseme(talk: TalkPage) -> None:
    """The mouth is wide open for "a", closed for "m", narrow for "u", and flat and broad for "i"."""
    await talk.open()
    a, m, u, i = await talk.page.evaluate(_SHOWN_AT, [200, 600, 1_200, 1_600])
    for shape, width, height in ((a, 65, 49), (m, 59, 0), (u, 40, 13), (i, 83, 16)):
        assert shape == pytest.approx([width, height], abs=4)


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_gaps_in_the_playback_are_measured(
    talk: TalkPage, controlled_vendor, make_controlled_strategy, put, audio_format: str
) -> None:
    await put("speech", "voice", VOICE | {"audio_format": audio_format})
    first, second = "A bell rang.", "Then another."
    await talk.open(await make_controlled_strategy(speech="voice"))
    await talk.say("Tell me a story")
    controlled_vendor.send(first + "\n\n")
    await wait_for_playback(talk, 300)
    at_ms = await talk.page.evaluate(_FELL_SILENT, 2 * SILENCE_MS)
    controlled_vendor.send(second)
    controlled_vendor.finish()
    await talk.answered()
    [*_, gap] = await talk.page.evaluate(_GAPS)  # A busy machine may add short ones before.
    assert gap["ms"] > SILENCE_MS
    assert gap["atMs"] == pytest.approx(at_ms, abs=100)


async def test_the_heard_time_survives_reloads(talk: TalkPage, fixed_strategy) -> None:
    """The answer is played from its beginning after a reload, and what was heard before is not added."""
    clock = asyncio.get_running_loop().time
    await talk.open(await fixed_strategy(LONG_STORY, speech="local"))
    begun = [clock()]
    await talk.say("Tell me a story")
    await wait_for_playback(talk)
    for _ in range(2):
        begun.append(clock())
        await talk.page.reload()
        await talk.ready()
        await talk.page.evaluate(_PICKED_UP)  # Playback starts again if the browser allows it without a gesture.
    async with talk.page.expect_request(lambda request: request.method == "DELETE") as request:
        await talk.button("Interrupt").evaluate("(button) => button.click()")
        heard_ms = int(URL((await request.value).url).query["heard_ms"])
    longest_ms = 1_000 * max(end - begin for begin, end in pairwise([*begun, clock()]))
    assert HEARD_MS <= heard_ms < max(2 * HEARD_MS, longest_ms)
    left = await talk.answered("interrupted")
    assert left == await talk.stored("assistant")
    assert LONG_STORY.startswith("\n\n".join(left))
    assert "\n\n".join(left) != LONG_STORY
