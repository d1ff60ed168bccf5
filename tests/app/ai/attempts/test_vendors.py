"""Complete streams with every vendor of the interface, played by the sandbox."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from storage.operators.audit import COMMAND
from streams.audio.mp3 import mp3_duration_ms
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import MODELS, VOICES, account, chat
from tests.app.ai.speech.speech import audio_of
from tests.peers.sse_client import all_events, named
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize("platform", MODELS)
async def test_every_language_model_answers(talk: Talk, server: Server, sandbox: Running, platform: str) -> None:
    await chat(server, sandbox, "one", platform)
    seen = await talk.turn("Tell me a story", "one")
    assert seen[-1].name == "end", seen[-1]
    assert len(named(seen, "assistant_output_content_segment")) >= 3
    billed = next(iter(sandbox.bill.since(0))).billed
    price = seen[-1].content["unit_price"]
    assert (price["input_token"], price["output_token"]) == (billed["input_tokens"], billed["output_tokens"])


async def test_strategies_fall_back_from_three_failed_vendors(talk: Talk, server: Server, sandbox: Running) -> None:
    await chat(server, sandbox, "a", "vendor_b_llm", key_of(fault="unavailable"))
    await chat(server, sandbox, "b", "gemini", key_of(fault="error_inside_200", position="before"))
    await chat(server, sandbox, "c", "anthropic")
    seen = await talk.turn("Hello", "a", "b", "c")
    assert seen[-1].content["strategy"] == "c"


async def test_an_interrupted_answer_is_continued_by_a_model_that_supports_it(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await chat(
        server, sandbox, "cut", "vendor_b_llm", key_of(fault="cut_mid_stream", position=4), on_break="continue"
    )
    await chat(server, sandbox, "next", "anthropic", key_of(text="and that is how it ended."))
    seen = await talk.turn("Tell me a story", "cut", "next")
    assert seen[-1].name == "end", seen[-1]
    assert "assistant_output_restart" not in [event.name for event in seen]
    text = "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))
    assert text.endswith("and that is how it ended.")
    assert len(text) > len("and that is how it ended.")
    assert seen[-1].content["strategy"] == "next"


@pytest.mark.parametrize("platform", VOICES)
async def test_every_voice_speaks_with_mouth_shapes(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    await account(server, sandbox, "voice", platform)
    value = {"account": "voice", "need_viseme": True, **VOICES[platform]}
    await server.services.configs.put("default", "speech", "one", value, author="test", origin=COMMAND)
    body = {"text": "Good morning to you. How are you?", "strategies": ["one"]}
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end", seen[-1]
    assert mp3_duration_ms(audio_of(named(seen, "audio_chunk"))) > 1_000
    if platform != "vendor_b_audio":  # It sends no times.
        assert sum(len(content["visemes"]) for content in named(seen, "viseme")) > 5


HOSTILE_KEY = "sk-live-0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    "message",
    [
        HOSTILE_KEY,
        f"Incorrect API key {HOSTILE_KEY} provided",
        "x" * 170 + HOSTILE_KEY,
        HOSTILE_KEY.upper(),
    ],
)
async def test_key_that_a_vendor_echoes_is_removed_from_messages_and_logs(
    talk: Talk, server: Server, capsys: pytest.CaptureFixture[str], message: str
) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.json_response({"error": {"message": message, "code": HOSTILE_KEY}}, status=401)

    app = web.Application()
    app.router.add_post("/chat/completions", refuse)
    async with TestServer(app) as vendor:
        value = {"platform": "vendor_b_llm", "base_url": str(vendor.make_url("")), "api_key": HOSTILE_KEY}
        await server.services.configs.put(
            "default", "vendor_accounts", "echo", value, author="test", origin=COMMAND
        )
        chat = {"chat": {"account": "echo", "model": "gpt-4o-mini"}}
        await server.services.configs.put("default", "conversation", "echo", chat, author="test", origin=COMMAND)
        seen = await talk.turn("Hello", "echo")
    reported = f"{seen[-1].content} {capsys.readouterr().out}".lower()
    assert "answered 401" in reported
    assert HOSTILE_KEY[:12] not in reported
