"""The panel "Look inside": what happened in a turn, why parts of it failed, its events, and its code."""

import asyncio
import re
import shutil
import sys
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from streams.wire.codec import loads
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Visit
from tests.browser.pictures import keep_picture
from tests.browser.talk_page import TalkPage
from tests.clients.typescript.compiler import check_types
from tests.clients.typescript.conftest import CLIENT, built
from tests.code.source_files import ROOT
from tests.peers.sse_client import named

__all__ = ["built"]

NODE = shutil.which("node") or "node"
CLIPBOARD = ["microphone", "clipboard-read", "clipboard-write"]
SAID = "It's 5 o'clock, \"they\" say: $HOME `ls` \\n é 🎈"
PARAGRAPHS = [f"Paragraph {number}.\n\n" for number in range(110)]
SCREENS = {
    "desktop-light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "phone-dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True},
}
SPANS = """async (given) => {
    const { axisOf, spansOf } = await import("/static/inside/spans.js");
    const { TurnRecord } = await import("/static/inside/record.js");
    const record = new TurnRecord({ method: "POST", url: "/", parameters: { type: "audio" } });
    record.connected("a", 0);
    record.received({ id: 1, name: "end", content: given });
    const spans = spansOf(record);
    return [spans.map(({ title, from, to }) => [title, from, to]), axisOf(spans)];
}"""
"""Returns the spans of a spoken turn whose event `end` is given, and the axis."""
SPOKEN = """async () => {
    const { spansOf, waitsOf } = await import("/static/inside/spans.js");
    const record = window.parley.details;
    const spans = spansOf(record).map(({ from, to }) => [from, to]);
    const [sent, recognized] = ["start", "user_input"].map((name) => record.first(name).at_ms);
    return [sent, recognized, ...spans.slice(0, 2), waitsOf(record).map(({ ms }) => ms ?? null)];
}"""
"""Returns when a spoken turn was sent and recognized, its first two spans, and its waits."""


RUNNING_VOICE = """async () => {
    const { spansOf } = await import("/static/inside/spans.js");
    const { TurnRecord } = await import("/static/inside/record.js");
    const record = new TurnRecord({ method: "POST", url: "/" });
    record.connected("a", 0);
    const at = (at_ms, name, content) => record.received({ id: at_ms, name, content });
    at(1, "start", {});
    for (const [ms, text] of [[100, "A bell "], [300, "rang. "], [320, "Then"]]) {
        at(ms, "assistant_output_chunk", { index: 0, text });
    }
    at(340, "assistant_output_audio_chunk", { index: 0, audio: "" });
    record.events.forEach((event) => { event.at_ms = event.id; });
    const { title, from, to } = spansOf(record).find(({ kind }) => kind === "voice");
    return { title, from, to };
}"""
"""Returns the span of the voice in an answer that still runs."""


def spans(talk: TalkPage) -> Locator:
    return talk.details.get_by_role("figure", name="Timeline").get_by_role("listitem")


def rows(talk: TalkPage) -> Locator:
    return talk.details.get_by_role("list", name="Events").get_by_role("listitem")


async def show_events(talk: TalkPage) -> None:
    await talk.open_details()
    await talk.details.get_by_role("tab", name="Events").click()


async def copied(talk: TalkPage, button: str) -> str:
    await talk.button(button).click()
    notice = talk.button(button).locator("+ span")
    await expect(notice).to_have_text("Copied")
    return await talk.page.evaluate("() => navigator.clipboard.readText()")


async def code(talk: TalkPage, language: str) -> str:
    await talk.tab("Code").click()
    await talk.tab(language).click()
    return await copied(talk, f"Copy {language}")


def installed(program: str, folder: Path) -> Path:
    """Write a TypeScript program to a folder in which the client is installed."""
    (folder / "node_modules").mkdir(exist_ok=True)
    (folder / "node_modules/parley-client").symlink_to(CLIENT)
    path = folder / "program.mts"
    path.write_text(program)
    return path


async def output(*command: str | Path, **environment: str) -> bytes:
    """Run a command. Return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={"PATH": "/usr/bin:/bin", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return printed


async def test_all_events_are_listed_with_their_contents(visit: Visit) -> None:
    talk = await visit(permissions=CLIPBOARD)
    await talk.open("scripted")
    await talk.say("Hello")
    await talk.answered()
    await talk.open_details()
    await expect(talk.details.get_by_role("figure", name="Mouth shapes of the voice")).to_be_visible()
    await show_events(talk)
    await expect(talk.details.get_by_role("img", name="Mouth")).to_have_count(0)
    await expect(talk.button("Disconnect")).to_be_visible()
    events = await talk.events()
    await expect(rows(talk)).to_have_count(len(events))
    for row, event in zip(await rows(talk).all_inner_texts(), events, strict=True):
        assert re.match(rf"{event.id}\s+{event.name}\s+[\d.]+ m?s\s+[\d.]+ K?B$", row.strip()), row
    assert [each["event"] for each in loads(await copied(talk, "Copy as JSON"))] == [each.name for each in events]

    name = "assistant_output_audio_chunk"
    await talk.details.get_by_role("combobox", name="Show").select_option(name)
    chunks = named(events, name)
    await expect(rows(talk)).to_have_count(len(chunks))
    await rows(talk).first.get_by_role("button").click()
    content = talk.details.get_by_role("region", name=f"Content of {name}")
    await expect(content).to_contain_text(chunks[0]["audio"][:24] + "…")
    assert chunks[0]["audio"][:60] not in await content.inner_text()
    assert loads(await copied(talk, "Copy content")) == chunks[0]
    await check_accessibility(talk.page)


async def test_only_the_newest_of_many_events_are_drawn(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a long story")
    await show_events(talk)
    controlled_vendor.send(*PARAGRAPHS)
    controlled_vendor.finish()
    await talk.answered()
    last = len(await talk.events())
    await expect(rows(talk)).to_have_count(200)
    await expect(rows(talk).last).to_contain_text(f"{last}end")
    await talk.button(f"Show all {last}").click()
    await expect(rows(talk)).to_have_count(last)


@pytest.mark.parametrize("screen", SCREENS)
async def test_the_stages_and_the_usage_are_those_of_the_server(visit: Visit, put, screen: str) -> None:
    price = {"input": 0.002, "output": 0.5}
    chat = {"account": "scripted", "model": "scripted", "price": price}
    await put("conversation", "a-priced", {"chat": chat, "speech": "local"})
    talk = await visit(**SCREENS[screen])
    await talk.open("a-priced")
    details = await talk.open_details()
    await expect(details.get_by_role("heading", name="An example")).to_be_visible()
    await expect(details).not_to_contain_text("failed")
    await keep_picture(talk.page, f"inside-empty-{screen}")
    await check_accessibility(talk.page)
    await talk.close_details()
    await talk.say("Hello")
    await talk.answered()
    details = await talk.open_details()
    await expect(details.get_by_text("✓ Integrity verified")).to_be_attached()
    [end] = named(await talk.events(), "end")
    latency, used = end["latency_ms"], end["unit_price"]
    times = details.locator("dl", has_text="First word")
    for title, stage in {"First word": "first_token", "First sound": "first_audio", "Total": "total"}.items():
        shown = await times.locator("div", has_text=title).locator("dd").inner_text()
        assert shown == (f"{latency[stage]} ms" if latency[stage] < 1_000 else f"{latency[stage] / 1_000:.2f} s")
    titles = [(await span.inner_text()).split("\n")[0] for span in await spans(talk).all()]
    assert titles == ["Request", "Model", "Answer", "Voice", "Audio"]
    usage = details.locator("dl", has_text="Language model")
    await expect(usage).to_contain_text(f"{used['output_token']} tokens")
    await expect(usage).to_contain_text(f"{end['digest']['chars']} characters")
    cost = used["input_token"] * price["input"] + used["output_token"] * price["output"]
    await expect(usage).to_contain_text(f"{cost:.4g}")
    console = details.get_by_role("link", name="Usage and cost of each attempt")
    await expect(console).to_have_attribute("href", re.compile(rf"/console#/streams/default/{talk.streams[-1]}$"))
    await talk.page.emulate_media(color_scheme=SCREENS[screen]["color_scheme"])  # The check has changed it.
    await keep_picture(talk.page, f"inside-{screen}")
    await check_accessibility(talk.page)


async def test_a_failed_attempt_shows_its_reason_without_a_click(talk: TalkPage, put, account) -> None:
    await put("conversation", "a-broken", {"chat": {"account": account, "model": "refuse:503"}})
    await put("conversation", "a-sound", {"chat": {"account": account, "model": "say:Here I am"}})
    await talk.open("a-broken")
    await talk.say("Is anybody there?")
    await talk.answered("failed")
    reason = talk.details.get_by_role("list", name="Attempts").get_by_role("listitem")
    await expect(reason).to_contain_text(
        re.compile(r"a-broken.*failed \d+ ms.*The vendor had an internal error.*answered 503", re.DOTALL)
    )
    config = reason.get_by_role("link", name="Open its config in the console")
    await expect(config).to_have_attribute("href", re.compile("/console#/configs/default/conversation/a-broken$"))
    await expect(spans(talk).last).to_contain_text("a-broken failed")
    await keep_picture(talk.page, "inside-failed")


async def test_a_disconnect_is_a_gap_in_the_timeline(
    talk: TalkPage, controlled_vendor, controlled_strategy: str
) -> None:
    await talk.open(controlled_strategy)
    await talk.say("Tell me a story")
    controlled_vendor.send(*PARAGRAPHS[:3])
    await expect(talk.answer).to_contain_text("Paragraph 2")
    await talk.disconnect()
    await expect(spans(talk).last).to_contain_text("Disconnected")
    controlled_vendor.send(*PARAGRAPHS[3:5])
    controlled_vendor.finish()
    await talk.answered()
    read = await talk.page.evaluate("() => window.parley.details.resumed[0]")
    await expect(spans(talk).last).to_contain_text(f"resumed after event {read}")
    await show_events(talk)
    await expect(rows(talk).nth(read)).to_contain_text(f"Resumed after event {read}.")


async def test_speech_that_no_strategy_recognized_is_followed_by_the_failed_attempts(
    talk: TalkPage, put, account: str, duration_recognition: str, controlled_vendor
) -> None:
    gone = f"gone-{account}"
    await put("vendor_accounts", gone, {"platform": "local_audio", "base_url": f"{controlled_vendor.url}/none"})
    await put("recognition", "gone", {"account": gone, "model": "duration"})
    await put("conversation", "deaf", {"chat": {"account": account, "model": "say:Hi"}, "recognition": "gone"})
    await talk.open("deaf")
    await talk.say_aloud()
    await talk.answered("failed")
    await expect(spans(talk)).to_have_text([re.compile("^Upload"), re.compile("^Recognition.*deaf failed")])
    await expect(talk.details).to_contain_text("The vendor does not know this model or address.")


async def test_the_time_of_the_recognition_does_not_count_as_upload_while_it_runs_and_if_the_turn_fails(
    talk: TalkPage, put, account: str, duration_recognition: str, controlled_vendor
) -> None:
    chat = {"account": account, "model": "refuse:503"}
    await put("conversation", "dumb", {"chat": chat, "recognition": duration_recognition})
    await talk.open("dumb")
    controlled_vendor.hears.clear()
    await talk.say_aloud()
    await expect(spans(talk)).to_have_text([re.compile("^Upload"), re.compile("^Recognition.*waiting")])
    controlled_vendor.hears.set()
    await talk.answered("failed")
    await expect(spans(talk)).to_have_text(
        [re.compile(f"^{title}") for title in ("Upload", "Recognition", "Model")]
    )
    sent, recognized, upload, recognition, [word, sound, _] = await talk.page.evaluate(SPOKEN)
    assert sent < recognized
    assert upload == [0, sent]
    assert recognition == [sent, recognized]
    assert (word, sound) == (None, None)


async def test_failed_attempts_follow_each_other_unless_they_overlapped(talk: TalkPage) -> None:
    await talk.open()
    latency = {
        "admission": 2,
        "input": 8_000,
        "stt": 8_400,
        "first_token": 9_000,
        "first_text": 9_000,
        "total": 9_500,
    }
    failed = [{"strategy": name, "stage": "llm", "elapsed_ms": ms} for name, ms in (("a", 200), ("b", 100))]
    end = {"latency_ms": latency, "attempts": failed, "strategy": "c", "digest": {"chars": 1}}
    shown, axis = await talk.page.evaluate(SPANS, end)
    assert shown[:5] == [
        ["Upload", 0, 8_000],
        ["Recognition", 8_000, 8_400],
        ["Model", 8_400, 8_600],
        ["Model", 8_600, 8_700],
        ["Model", 8_700, 9_000],
    ]
    assert axis["from"] > 7_000  # The rest would be too small to see beside all of the speech.
    failed[1]["elapsed_ms"] = 550  # Attempts that are hedged run at once.
    shown, _ = await talk.page.evaluate(SPANS, end)
    assert shown[2:4] == [["Model", 8_400, 8_600], ["Model", 8_400, 8_950]]


async def test_the_wait_for_the_voice_begins_with_the_first_sentence_while_the_answer_runs(talk: TalkPage) -> None:
    await talk.open()
    assert await talk.page.evaluate(RUNNING_VOICE) == {"title": "Voice", "from": 300, "to": 340}


async def test_earlier_turns_can_be_chosen(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    for text in ("The first", "The second"):
        await talk.say(text)
        await talk.answered()
    details = await talk.open_details()
    await expect(details).to_contain_text("2 of 2")
    await expect(details).to_contain_text("The second")
    await talk.button("Earlier turn").click()
    await expect(details).to_contain_text("The first")
    await talk.say("The third")
    await expect(details).to_contain_text("3 of 3")
    await expect(details).to_contain_text("The third")
    await talk.button("Earlier turn").press("Escape")
    await expect(details).to_have_count(0)


@pytest.mark.parametrize("width", [1024, 900])
async def test_the_panel_leaves_the_row_to_speak_in_free_on_a_tablet(visit: Visit, width: int) -> None:
    talk = await visit(viewport={"width": width, "height": 768})
    await talk.open("scripted-text")
    details = await talk.open_details()
    await talk.say("Hello")
    await talk.answered()
    await expect(details).to_contain_text("Hello")
    await details.get_by_role("button", name="Close").click()  # Nothing lies over it.
    await expect(details).to_have_count(0)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_copied_curl_command_repeats_the_request(visit: Visit) -> None:
    talk = await visit(permissions=CLIPBOARD)
    await talk.open("scripted-text")
    await talk.say(SAID)
    await talk.answered()
    await talk.open_details()
    line = await code(talk, "curl")
    await check_accessibility(talk.page)
    assert line.startswith("curl ")
    shown = talk.details.get_by_role("region", name="The request in curl").locator("code")
    tops = await shown.evaluate("(code) => [...code.getClientRects()].map(({ top }) => Math.round(top))")
    assert len(set(tops)) == len(line.splitlines())
    assert talk.token not in line
    printed = await output("sh", "-c", line, SESSION=talk.token)
    contents = [loads(line[6:])["content"] for line in printed.splitlines() if line[:5] == b"data:"]
    assert contents[1] == SAID
    assert contents[-1]["finish_reason"] == "stop"


async def test_the_copied_python_program_repeats_the_request(visit: Visit, tmp_path: Path) -> None:
    talk = await visit(permissions=CLIPBOARD)
    await talk.open("scripted-text")
    await talk.say("The sea is grey")
    await talk.answered()
    await talk.say(SAID)
    answer = await talk.answered()
    await talk.open_details()
    program = tmp_path / "program.py"
    program.write_text(await code(talk, "Python"))
    printed = await output(sys.executable, program, SESSION=talk.token, PYTHONPATH=str(ROOT / "clients/python"))
    assert printed.decode() == "".join(answer)
    await expect(talk.details).not_to_contain_text(talk.token)


async def test_the_copied_typescript_program_repeats_the_request(visit: Visit, built: None, tmp_path: Path) -> None:
    talk = await visit(permissions=CLIPBOARD)
    await talk.open("scripted-text")
    await talk.say(SAID)
    answer = await talk.answered()
    await talk.open_details()
    program = installed(await code(talk, "TypeScript"), tmp_path)
    check_types(tmp_path, exactOptionalPropertyTypes=True)
    shutil.copy(program, tmp_path / "program.mjs")  # Not every Node runs TypeScript. It uses no types.
    assert (await output(NODE, tmp_path / "program.mjs", SESSION=talk.token)).decode() == "".join(answer)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.usefixtures("built")
async def test_the_code_of_a_spoken_turn_sends_a_recording(
    visit: Visit, fixed_strategy, duration_recognition: str, microphone: Path, tmp_path: Path
) -> None:
    talk = await visit(permissions=CLIPBOARD)
    await talk.open(await fixed_strategy("Tokyo.", recognition=duration_recognition))
    await talk.say_aloud()
    await talk.answered()
    await talk.open_details()
    await expect(spans(talk).first).to_contain_text("Upload")
    shutil.copy(microphone, tmp_path / "recording.wav")
    line = await code(talk, "curl")
    printed = await output("sh", "-c", f"cd {tmp_path}; {line}", SESSION=talk.token)
    assert b"Tokyo." in printed
    program = tmp_path / "program.py"
    program.write_text(f"import os; os.chdir({str(tmp_path)!r})\n{await code(talk, 'Python')}")
    printed = await output(sys.executable, program, SESSION=talk.token, PYTHONPATH=str(ROOT / "clients/python"))
    assert printed == b"Tokyo."
    installed(await code(talk, "TypeScript"), tmp_path)
    check_types(tmp_path, exactOptionalPropertyTypes=True)
