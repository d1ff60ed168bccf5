"""What a voice is given of an answer in Markdown, and what the client is shown."""

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import VOICES, account, chat
from tests.peers.sse_client import named
from tests.running.servers import Server
from tests.streams.spoken.answers_read import ANSWERS
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.mark.parametrize("name", ["03.en-code-between-prose", "65.en-code-in-quotes-and-items"])
async def test_code_is_shown_and_the_prose_around_it_is_spoken(
    talk: Talk, server: Server, sandbox: Running, name: str
) -> None:
    (answer,) = (path for path in ANSWERS if path.stem == name)
    await account(server, sandbox, "voice", "vendor_b_audio")
    value = {"account": "voice", **VOICES["vendor_b_audio"]}
    await server.services.configs.put("default", "speech", "voice", value, author="test", origin=COMMAND)
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(text=answer.read_text()), speech="voice")

    seen = await talk.turn("How?", "one")

    assert seen[-1].name == "end", seen[-1]
    shown = "\n\n".join(segment["text"] for segment in named(seen, "assistant_output_content_segment"))
    assert shown == answer.read_text()
    spoken = [call.asked["input"] for call in sandbox.bill.since(0) if call.stage == "tts"]
    # Several sentences are synthesized at once, whose requests may arrive in any order.
    assert sorted(" ".join(spoken).split()) == sorted(answer.with_suffix(".txt").read_text().split())
