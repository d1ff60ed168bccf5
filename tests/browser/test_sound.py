"""Answers that are heard, and interrupted."""

import asyncio
import base64
from collections import defaultdict

import pytest
from playwright.async_api import expect
from yarl import URL

from streams.durations import duration_s
from tests.browser.conftest import SPOKEN, Visit
from tests.browser.talking import Talking
from tests.sse_client import named

STORY = """\
The boats went out with the tide.

Then a bell rang, and by noon every boat was back."""
LONG_STORY = "\n\n".join([STORY] * 4)
VOICE = {"account": "local-audio", "model": "espeak", "voice": "en-us", "need_viseme": True}
LONGEST_GAP_MS = 50
SILENCE_MS = 150
HEARD_MS = 1_500
AT_ONCE_MS = 50

_CLOCK = """async () => {
    const { player } = window.parley;
    const samples = [];
    while (player.playing) {
        samples.push([performance.now(), player.playedMs]);
        await new Promise(requestAnimationFrame);
    }
    return samples;
}"""
_REACHED = """async (ms) => {
    while (window.parley.player.playedMs < ms) await new Promise(requestAnimationFrame);
}"""
_SILENT_AFTER = """async (button) => {
    const from = performance.now();
    button.click();
    while (window.parley.player.playing) await new Promise(requestAnimationFrame);
    return performance.now() - from;
}"""
_MOVED = """async (frames) => {
    const before = window.parley.player.playedMs;
    for (let frame = 0; frame < frames; frame += 1) await new Promise(requestAnimationFrame);
    return window.parley.player.playedMs - before;
}"""

_FELL_SILENT = """async (ms) => {
    const { player } = window.parley;
    let [from, played] = [performance.now(), 0];
    while (performance.now() - from < ms) {
        if (player.playedMs !== played) [from, played] = [performance.now(), player.playedMs];
        await new Promise(requestAnimationFrame);
    }
    return [played, player.state];
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
    const { Mouth } = await import("/static/talk/mouth.js");
    const { html, render } = await import("/static/vendor/preact.js");
    const visemes = [[0, 2, 0], [400, 21, 0], [0, 7, 1], [400, 6, 1]];
    const player = { playing: true, state: "playing", playedMs: 0, startOf: (index) => index * 1000 };
    const place = document.body.appendChild(document.createElement("div"));
    render(html`<${Mouth} player=${player} visemes=${visemes} />`, place);
    const drawn = [];
    for (const ms of times) {
        player.playedMs = ms;
        const until = performance.now() + 500;
        while (performance.now() < until) await new Promise(requestAnimationFrame);
        const { width, height } = place.querySelector(".mouth-dark").getBBox();
        drawn.push([width, height]);
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


async def length_ms(talk: Talking) -> float:
    """How long the answer's audio plays, as the server sent it."""
    audio: dict[int, bytes] = defaultdict(bytes)
    mime_types = set()
    for chunk in named(await talk.events(), "assistant_output_audio_chunk"):
        audio[chunk["index"]] += base64.b64decode(chunk["audio"])
        mime_types.add(chunk.get("mime_type"))
    [mime_type] = mime_types - {None}
    return sum(1000 * (duration_s(paragraph, mime_type) or 0) for paragraph in audio.values())


async def heard(talk: Talking, ms: int = HEARD_MS) -> None:
    """Wait until so much of the answer was heard."""
    await expect(talk.status).to_contain_text("Speaking")
    await talk.page.evaluate(_REACHED, ms)


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_an_answer_is_played_without_a_gap_and_the_mouth_moves(
    talk: Talking, say, put, audio_format: str
) -> None:
    await put("speech", "voice", VOICE | {"audio_format": audio_format})
    await talk.open(await say(STORY, speech="voice"))
    assert len(await talk.page.evaluate(_SHAPES)) == 1
    await talk.say("Tell me a story")
    await expect(talk.status).to_contain_text("Speaking")
    shapes, clock = await asyncio.gather(talk.page.evaluate(_SHAPES), talk.page.evaluate(_CLOCK))
    assert len(shapes) > 10
    played = [ms for _, ms in clock]
    assert played == sorted(played)
    length = await length_ms(talk)
    assert length > 3_000
    assert played[-1] == pytest.approx(length, abs=200)
    lag = [now - ms for now, ms in clock if ms]
    assert max(lag) - min(lag) < LONGEST_GAP_MS
    assert await talk.page.evaluate("() => window.parley.player.gaps") == []
    await expect(talk.status).to_contain_text("Ready")
    await talk.verdict()


async def test_the_sound_goes_on_where_the_plug_was_pulled(talk: Talking, teller, telling) -> None:
    first, second = STORY.split("\n\n")
    await talk.open(await telling(speech="local"))
    await talk.say("Tell me a story")
    teller.tell(first + "\n\n")
    await heard(talk, 300)
    await talk.button("Disconnect").click()
    teller.tell(second)
    teller.finish()
    assert await talk.answered() == [first, second]
    clock = await talk.page.evaluate(_CLOCK)
    assert clock[-1][1] == pytest.approx(await length_ms(talk), abs=200)
    assert await talk.page.evaluate("() => window.parley.player.gaps") == []
    await talk.verdict()


async def test_after_an_interruption_page_and_history_have_what_was_heard(talk: Talking, say) -> None:
    await talk.open(await say(LONG_STORY, speech="local"))
    await talk.say("Tell me a story")
    await heard(talk)
    assert await talk.button("Interrupt").evaluate(_SILENT_AFTER) < AT_ONCE_MS
    left = await talk.answered("interrupted")
    assert await talk.page.evaluate(_MOVED, 20) == 0
    assert "\n\n".join(left) != LONG_STORY
    assert LONG_STORY.startswith("\n\n".join(left))
    assert left == await talk.kept("assistant")
    assert len(" ".join(left).split()) >= 3
    await expect(talk.status).to_contain_text("Ready")
    await expect(talk.button("Interrupt")).to_be_disabled()


async def test_an_answer_is_interrupted_while_it_is_being_made(talk: Talking, teller, telling) -> None:
    await talk.open(await telling(speech="local"))
    await talk.say("Tell me a story")
    teller.tell(STORY + "\n\n", "And then ")
    await heard(talk)
    await talk.button("Interrupt").click()
    left = await talk.answered("interrupted")
    assert STORY.startswith("\n\n".join(left))
    assert "\n\n".join(left) != STORY
    assert left == await talk.kept("assistant")
    await teller.left.wait()


async def test_an_answer_in_text_alone_is_interrupted(talk: Talking, teller, told: str) -> None:
    await talk.open(told)
    await talk.say("Tell me a story")
    teller.tell("Once upon a time", " there was a")
    await expect(talk.answer).to_contain_text("there was a")
    await talk.button("Interrupt").click()
    left = await talk.answered("interrupted")
    assert left == await talk.kept("assistant") == ["Once upon a time there was a"]
    await teller.left.wait()


async def test_who_begins_to_talk_interrupts_and_is_answered(talk: Talking, say) -> None:
    await talk.open(await say(LONG_STORY, speech="local", recognition="local"))
    await talk.say("Tell me a story")
    await heard(talk)
    await talk.press(talk.hold)
    await expect(talk.status).to_contain_text("Listening")
    assert not await talk.page.evaluate("() => window.parley.player.playing")
    left = await talk.answered("interrupted")
    assert LONG_STORY.startswith("\n\n".join(left))
    assert left == await talk.kept("assistant")
    await talk.all_is_said()
    await talk.page.mouse.up()
    await expect(talk.said.locator("p")).to_have_text(SPOKEN)
    await talk.answered()
    assert await talk.kept("user") == [SPOKEN]


async def test_a_mouth_stands_still_for_those_who_want_no_motion(visit: Visit, say, put) -> None:
    await put("speech", "voice", VOICE)
    talk = await visit(reduced_motion="reduce")
    await talk.open(await say(STORY, speech="voice"))
    await talk.say("Tell me a story")
    await expect(talk.status).to_contain_text("Speaking")
    assert len(await talk.page.evaluate(_SHAPES)) <= 2
    await talk.button("Interrupt").click()
    await talk.answered("interrupted")


async def test_the_mouth_has_the_shape_of_the_viseme_that_is_due(talk: Talking) -> None:
    """Wide open for an "a", closed for an "m", narrow for a "u", flat and broad for an "i"."""
    await talk.open()
    a, m, u, i = await talk.page.evaluate(_SHOWN_AT, [200, 600, 1_200, 1_600])
    for shape, width, height in ((a, 65, 49), (m, 59, 0), (u, 40, 13), (i, 83, 16)):
        assert shape == pytest.approx([width, height], abs=4)


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_silence_inside_an_answer_is_noticed(talk: Talking, teller, telling, put, audio_format: str) -> None:
    await put("speech", "voice", VOICE | {"audio_format": audio_format})
    first, second = "A bell rang.", "Then another."
    await talk.open(await telling(speech="voice"))
    await talk.say("Tell me a story")
    teller.tell(first + "\n\n")
    await heard(talk, 300)
    at_ms, state = await talk.page.evaluate(_FELL_SILENT, 2 * SILENCE_MS)
    assert state == "waiting"
    teller.tell(second)
    teller.finish()
    await talk.answered()
    [gap] = await talk.page.evaluate(_GAPS)
    assert gap["ms"] > SILENCE_MS
    assert gap["at_ms"] == pytest.approx(at_ms, abs=100)


async def test_what_was_heard_before_is_known_however_often_the_page_is_loaded_again(talk: Talking, say) -> None:
    await talk.open(await say(LONG_STORY, speech="local"))
    await talk.say("Tell me a story")
    await heard(talk)
    for _ in range(2):
        await talk.page.reload()
        await talk.ready()
        await talk.page.evaluate(_PICKED_UP)  # from its start, where the browser lets it sound without a gesture
    async with talk.page.expect_request(lambda request: request.method == "DELETE") as asked:
        await talk.button("Interrupt").evaluate("(button) => button.click()")
        heard_ms = int(URL((await asked.value).url).query["heard_ms"])
    assert HEARD_MS <= heard_ms < 2 * HEARD_MS
    left = await talk.answered("interrupted")
    assert left == await talk.kept("assistant")
    assert LONG_STORY.startswith("\n\n".join(left))
    assert "\n\n".join(left) != LONG_STORY
