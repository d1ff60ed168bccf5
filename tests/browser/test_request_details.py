"""The details of a request: events, latency, and the equivalent curl command."""

import asyncio
import re
import shutil

import pytest
from playwright.async_api import expect

from streams.wire.codec import loads
from tests.browser.conftest import Visit
from tests.browser.talk_page import TalkPage
from tests.peers.sse_client import named


async def test_all_events_and_the_receipt_are_shown(talk: TalkPage) -> None:
    await talk.open("scripted-text")
    await talk.say("Hello")
    await talk.answered()
    await talk.open_details()
    rows = talk.page.get_by_role("table", name="Events").get_by_role("row")
    events = await talk.events()
    await expect(rows).to_have_count(len(events) + 1)
    for row, event in zip((await rows.all_inner_texts())[1:], events, strict=True):
        assert re.match(rf"{event.id}\s+\d+ ms\s+{event.name}\s", row), row
    [end] = named(events, "end")
    receipt = talk.page.get_by_role("figure", name="Latency")
    for stage in ("first_text", "total"):
        await expect(receipt).to_contain_text(f"{end['latency_ms'][stage]} ms")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_copied_curl_command_repeats_the_request(visit: Visit) -> None:
    talk = await visit(permissions=["microphone", "clipboard-read", "clipboard-write"])
    await talk.open("scripted-text")
    said = "It's 5 o'clock, \"they\" say: $HOME `ls` \\n é 🎈"
    await talk.say(said)
    await talk.answered()
    await talk.open_details()
    await talk.button("Copy as curl").click()
    line = await talk.page.evaluate("() => navigator.clipboard.readText()")
    assert line.startswith("curl ")
    assert talk.token not in line
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", line),
        env={"SESSION": talk.token, "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    answer, _ = await process.communicate()
    assert process.returncode == 0
    contents = [
        loads(line.removeprefix(b"data: "))["content"] for line in answer.splitlines() if line[:4] == b"data"
    ]
    assert contents[1] == said
    assert contents[-1]["finish_reason"] == "stop"
