"""The operator's order of strategies replaces the order in which requests name them."""

from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import VOICES, account, chat
from tests.app.operator_calls import call
from tests.peers.sse_client import SeenEvent, all_events
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

APP = "/admin/api/configs/default/apps/default"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def order(server: Server, *names: str) -> None:
    status, answer = await call(server, "PUT", APP, {"value": {"strategy_order": list(names)}})
    assert status == 200, answer


async def voice(server: Server, sandbox: Running, name: str, **options: Any) -> None:
    await account(server, sandbox, f"{name}-voice", "vendor_b_audio", key_of(**options))
    value = {"account": f"{name}-voice", **VOICES["vendor_b_audio"]}
    await server.services.configs.put("default", "speech", name, value, author="test", origin=COMMAND)


async def speak(talk: Talk, *strategies: str) -> list[SeenEvent]:
    async with talk.post("/bp/ai/audio/tts", json={"text": "Hello.", "strategies": strategies}) as response:
        return await all_events(response)


def failed(seen: list[SeenEvent]) -> list[str]:
    return [attempt["strategy"] for attempt in seen[-1].content.get("attempts", [])]


async def test_an_order_of_the_app_decides_which_model_answers(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    for name, platform in (("openai", "vendor_b_llm"), ("claude", "anthropic")):
        await chat(server, sandbox, name, platform)
    assert (await talk.turn("Hello", "openai", "claude"))[-1].content["strategy"] == "openai"
    await order(server, "claude", "openai")
    assert (await talk.turn("Hello", "openai", "claude"))[-1].content["strategy"] == "claude"

    await chat(server, sandbox, "claude", "anthropic", key_of(fault="unauthorized"))
    await chat(server, sandbox, "other", "gemini")
    seen = await talk.turn("Hello", "unknown", "other", "openai", "claude")
    assert (seen[-1].content["strategy"], failed(seen)) == ("openai", ["claude"])
    seen = await talk.turn("Hello", "unknown", "other", "claude")
    assert (seen[-1].content["strategy"], failed(seen)) == ("other", ["claude", "unknown"]), "others keep theirs"
    await order(server)
    assert (await talk.turn("Hello", "other", "openai"))[-1].content["strategy"] == "other"


async def test_an_order_of_the_app_decides_which_voice_speaks(talk: Talk, server: Server, sandbox: Running) -> None:
    for name in ("calm", "bright"):
        await voice(server, sandbox, name)
    assert (await speak(talk, "calm", "bright"))[-1].content["strategy"] == "calm"
    await order(server, "bright", "claude", "calm")
    assert (await speak(talk, "calm", "bright"))[-1].content["strategy"] == "bright"
    await voice(server, sandbox, "bright", fault="unauthorized")
    seen = await speak(talk, "calm", "bright")
    assert (seen[-1].content["strategy"], failed(seen)) == ("calm", ["bright"])


async def test_the_voices_of_a_conversation_follow_the_order_of_the_app(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, "mute", fault="unauthorized")
    for name in ("second", "third"):
        await voice(server, sandbox, name)
    await chat(server, sandbox, "openai", "vendor_b_llm", speech="third")
    await chat(server, sandbox, "gemini", "gemini", speech="second")
    await chat(server, sandbox, "claude", "anthropic", speech="mute")
    await order(server, "claude", "gemini", "openai")
    seen = await talk.turn("Hello", "openai", "gemini", "claude")
    assert seen[-1].content["strategy"] == "claude"
    async with server.services.database.connection() as conn:
        rows = await conn.fetch("select strategy, outcome from attempts where stage = 'tts' order by number")
    outcomes = {tuple(row) for row in rows}
    assert ("second", "won") in outcomes
    assert {name for name, _ in outcomes} == {"mute", "second"}


async def test_an_order_names_each_strategy_once(server: Server) -> None:
    status, answer = await call(server, "PUT", APP, {"value": {"strategy_order": ["claude", "claude"]}})
    assert (status, answer["error"]["message"]) == (
        400, "invalid_parameter: strategy_order must not contain a name twice",
    )  # fmt: skip


async def test_an_unusable_app_config_leaves_the_order_to_the_request(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    for name, platform in (("openai", "vendor_b_llm"), ("claude", "anthropic")):
        await chat(server, sandbox, name, platform)
    await order(server, "claude")
    async with server.services.database.connection() as conn:
        await conn.execute(
            """update config_revisions set value = '{"currency": 1, "strategy_order": ["claude"]}'"""
            " where kind = 'apps' and revision > 1"
        )
        await conn.execute("update configs set change = change + 1000 where kind = 'apps'")
    await server.services.configs.refresh()
    assert (await talk.turn("Hello", "openai", "claude"))[-1].content["strategy"] == "openai"
