"""A sentence of an answer that was spoken once is not synthesized again."""

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.cached_speech import cached_files, calls, spoken, voice
from tests.app.ai.speech.speech import audio_of, fetch
from tests.peers.sse_client import named
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


async def answers(server: Server, strategy, text: str) -> None:
    """Create a strategy with this answer, spoken sentence by sentence."""
    await strategy("silent", "say:")
    chat = {"account": "test", "model": f"say:{text}"}
    value = {"chat": chat, "speech": "one", "sentence_characters": 20}
    await server.services.configs.put("default", "conversation", "answers", value, author="test", origin=COMMAND)


async def test_a_sentence_of_a_conversation_is_synthesized_once_for_all(
    talk: Talk, server: Server, sandbox: Running, strategy
) -> None:
    await voice(server, sandbox)
    await answers(server, strategy, "Hello there, my friend. How are you?")
    turns = []
    for _ in range(2):
        talk.conversation_id = ""
        turns.append(await talk.turn("Hello", "answers"))
    first, second = turns
    assert first[-1].name == second[-1].name == "end"
    assert "speech" not in second[-1].content
    assert calls(sandbox) == 2
    audio = [audio_of(named(turn, "assistant_output_audio_chunk")) for turn in turns]
    assert audio[0] == audio[1]
    shapes = [
        [shape for content in named(turn, "assistant_output_viseme") for shape in content["visemes"]]
        for turn in turns
    ]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) > 5
    link = named(second, "assistant_output_audio")[0]["audio_url"]
    assert await fetch(talk, link) == audio[1]
    await spoken(talk, text="Hello there, my friend.", language_code="en-US")
    assert calls(sandbox) == 2
    kept = await cached_files(server)
    async with talk.server.http.delete(
        f"{talk.server.url}/bp/ai/conversation/{talk.conversation_id}",
        headers={"X-Service-Session-Token": talk.token},
    ) as response:
        assert response.status == 200, await response.text()
    assert await cached_files(server) == kept


async def test_the_only_sentence_of_an_answer_is_cached_too(
    talk: Talk, server: Server, sandbox: Running, strategy
) -> None:
    await voice(server, sandbox)
    await strategy("greets", "say:Welcome.", speech="one")
    for _ in range(3):
        assert (await talk.turn("Hello", "greets"))[-1].name == "end"
    assert calls(sandbox) == 1


async def test_a_sentence_that_an_answer_repeats_is_synthesized_once(
    talk: Talk, server: Server, sandbox: Running, strategy
) -> None:
    await voice(server, sandbox, key=key_of(pace_ms=20))
    await answers(server, strategy, "We are all here. " * 5)
    seen = await talk.turn("Hello", "answers")
    assert seen[-1].name == "end"
    assert "speech" not in seen[-1].content
    assert calls(sandbox) == 1
