"""Answers of language models in forms that are legal or widespread, though no vendor documents them."""

import pytest

from tests.app.ai.attempts.odd_events import DONE, END, STOPPED, block, candidate, delta, event, said_by
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import chat
from tests.peers.sse_client import events
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


HEARTBEATS = "data: \n\ndata:\n\n: ping\n\ndata:   \n\n"
HALVES = '{"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}'
HIGH, LOW = (f"data: {HALVES % half}\n\n" for half in (r"a\ud83d", r"\ude00b"))
HIGH_LAST, LOW_LAST = (half.replace('"finish_reason":null', '"finish_reason":"stop"') for half in (HIGH, LOW))
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
ODD = [
    event(), event(choices=None), event(choices=7), event(choices=[None, 7, "x", {}]), event(choices={"a": 1}),
    event(choices=[{"delta": None}]), event(choices=[{"delta": "x", "index": None}]), delta(None), delta(True),
    delta({"x": 1}), delta([None, 5]), event(usage="many", error=None), "data: [1]\n\n", 'data: "x"\n\n',
    "data: null\n\n", "data: NaN\n\n",
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (HEARTBEATS + delta("Hel") + HEARTBEATS + delta("lo.") + END + DONE, "Hello."),
        (delta("Hello.") + END + "data: [DONE] \n\n", "Hello."),
        (delta("Hello.") + "data: [DONE]\t\r\n\r\n", "Hello."),
        (delta("Hello.") + END + "data: {broken\n\n" + DONE, "Hello."),
        (delta("Hello.") + END + event(error={"message": "too late"}), "Hello."),
        (delta([THOUGHT]) + delta([{"type": "text", "text": "Hello."}]) + delta("") + END + DONE, "Hello."),
        (delta(["Hello", {"text": "."}]) + END + DONE, "Hello."),
        (delta([{"type": "output_text", "text": "Hello."}], "stop") + DONE, "Hello."),
        (delta({"type": "text", "text": "Hello."}, "stop") + DONE, "Hello."),
        (event(choices=[{"index": "0", "delta": {"content": "Hello."}, "finish_reason": "stop"}]) + DONE, "Hello."),
        (event(choices=[{"message": {"content": "Hello."}, "finish_reason": "stop"}]) + DONE, "Hello."),
        (delta("Hello.") + event(choices=[{"message": {"content": "Hello."}}]) + END + DONE, "Hello."),
        (delta("Hel") + "data: ping\n\n" + delta("lo.") + END + DONE, "Hello."),
        (delta("Hel") + event(error={"code": None, "message": None}) + delta("lo.") + END + DONE, "Hello."),
        (delta("Hel") + delta("lo.", "stop").rstrip(), "Hello."),
        (delta("Hello.") + DONE.rstrip(), "Hello."),
        (delta("Hello.", "stop") + "data: {cut", "Hello."),
        (HIGH_LAST + LOW_LAST + DONE, "a😀b"),
        (HIGH + LOW + END + DONE, "a😀b"),
        (HIGH + HIGH + LOW + END + DONE, "a\ufffda😀b"),
        (HIGH + END + DONE, "a\ufffd"),
        (LOW + END + DONE, "\ufffdb"),
        ("".join(delta("o") + odd for odd in ODD) + END + DONE, "o" * len(ODD)),
        (delta("He", "stop") + delta("llo.", "stop") + DONE, "Hello."),
    ],
)
async def test_compatible_servers_are_understood(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", answer), seen[-1]
    assert seen[-1].content["finish_reason"] == "stop"


REPEATED = event(choices=[{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}])


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (event(choices=[{"delta": {}, "message": {"content": "Hello."}, "finish_reason": "stop"}]), "Hello."),
        (event(choices=[{"delta": {"content": ""}, "message": {"content": "Hello."}}]) + DONE, "Hello."),
        (event(choices=[{"delta": {"role": "assistant"}}]) + REPEATED, "Hello."),
        (event(choices=[{"delta": {"role": "assistant", "content": None}}]) + REPEATED[:-2], "Hello."),
        (event(choices=[{"message": {"content": "Hel"}}]) + event(choices=[{"message": {"content": "lo."}}]) + END,
         "Hello."),
        (delta("Hel") + delta("lo.") + REPEATED, "Hello."),
        (delta("Hel") + REPEATED, "Hello."),
        (delta("Hello. ") + REPEATED, "Hello."),
        (event(choices=[{"delta": {"content": "Hello."}, "message": {"content": "Hello."}}]) + END, "Hello."),
        (delta(5) + delta(" apples") + END, "5 apples"),
        (delta(0.5, "stop"), "0.5"),
        (delta([{"type": "text", "text": 5}, {"type": "text_delta", "text": " apples"}], "stop"), "5 apples"),
        (delta([{"type": "refusal", "refusal": "I cannot."}], "stop"), "I cannot."),
        (event(choices=[{"delta": {"content": "", "refusal": "I cannot."}}]) + END, "I cannot."),
        (event(choices=[{"message": {"content": None, "refusal": "I cannot."}}]) + END, "I cannot."),
        (delta([{"text": "Hm.", "thought": True}, {"text": "Hello."}], "stop"), "Hello."),
        (event(choices=[{"delta": {"content": "Hello."}, "finish_reason": "stop"}], error={"code": 0}), "Hello."),
    ],
)  # fmt: skip
async def test_text_is_shown_once_wherever_it_arrives(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen).rstrip()) == ("end", answer), seen[-1]


@pytest.mark.parametrize(
    ("platform", "body"),
    [
        ("gemini", candidate(5, None) + candidate(" apples")),
        ("anthropic", event(type="content_block_delta", delta={"text": 5}) + block(" apples") + STOPPED),
    ],
)
async def test_a_number_is_text_at_each_vendor(
    talk: Talk, server: Server, sandbox: Running, platform: str, body: str
) -> None:
    await chat(server, sandbox, "one", platform, key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "5 apples"), seen[-1]


async def test_only_the_first_candidate_of_gemini_is_shown(talk: Talk, server: Server, sandbox: Running) -> None:
    both = [{"content": {"parts": [{"text": text}]}, "index": index} for index, text in enumerate(["One.", "Two."])]
    await chat(server, sandbox, "one", "gemini", key_of(events=event(candidates=both) + candidate("")))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "One."), seen[-1]


@pytest.mark.parametrize("platform", ["vendor_b_llm", "gemini", "anthropic"])
async def test_half_a_character_in_an_error_does_not_lose_the_end_of_the_stream(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    spoken = {"type": "text_delta", "text": "Hi"}
    said = {
        "vendor_b_llm": delta("Hi"),
        "gemini": candidate("Hi", ""),
        "anthropic": event(type="content_block_delta", index=0, delta=spoken),
    }
    error = r'{"type": "a\ud83d", "status": "a\ud83d", "message": "Too busy \ud83d"}'
    body = said[platform] + f'data: {{"type": "error", "error": {error}}}\n\n'
    await chat(server, sandbox, "one", platform, key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("error", "Hi"), seen[-1]
    assert seen[-1].content["error"]["message"].endswith("broke off with an error: Too busy ?")


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (candidate("One ") + candidate("two ") + candidate("three."), "One two three."),
        (candidate("One ", "FINISH_REASON_UNSPECIFIED") + candidate("two."), "One two."),
        (candidate("Hello.") + DONE, "Hello."),
        (candidate("Hello.", "stop"), "Hello."),
        (candidate("Hel", None) + candidate("lo.").rstrip(), "Hello."),
        (candidate("H~").replace("~", r"\ud83d") + candidate("~.").replace("~", r"\ude00"), "H😀."),
        (candidate("Hello.") + event(error={"code": None, "message": None}), "Hello."),
        (candidate("Hello.") + event(error={"code": 503, "message": "too late"}), "Hello."),
    ],
)
async def test_gemini_ends_with_its_stream(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "gemini", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", answer), seen[-1]
    price = seen[-1].content["unit_price"]
    assert (price["input_token"], price["output_token"]) == (1, 2)


@pytest.mark.parametrize("platform", ["gemini", "vendor_b_llm"])
@pytest.mark.parametrize(
    ("chunks", "ended"),
    [
        ([("One ", True), ("two ", True)], "error"),
        ([("One ", True), ("two ", True), ("", True)], "end"),
        ([("One ", False), ("two ", True)], "end"),
        ([("One two ", True)], "end"),
        ([("One ", False), ("two ", False)], "error"),
        ([("One ", True), ("two ", False)], "error"),
    ],
)
async def test_a_cut_leaves_an_answer_whole_if_its_last_chunk_is_known(
    talk: Talk, server: Server, sandbox: Running, *, platform: str, chunks: list[tuple[str, bool]], ended: str
) -> None:
    """Each chunk has a text, and whether it has a finish reason. After them, the connection is reset."""
    part = {"gemini": candidate, "vendor_b_llm": delta}[platform]
    body = "".join(part(text, "STOP" if has_reason else None) for text, has_reason in chunks)
    await chat(server, sandbox, "one", platform, f"{key_of(events=body, fault='cut_mid_stream')},position=9")

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == (ended, "One two "), seen[-1]


@pytest.mark.parametrize(("parts", "ended"), [("ab", "error"), ("a\n", "end"), ("ab!", "end")])
async def test_text_behind_the_stop_reason_of_anthropic_makes_a_cut_answer_incomplete(
    talk: Talk, server: Server, sandbox: Running, parts: str, ended: str
) -> None:
    """A stop reason follows the first part, and is also what `!` stands for."""
    body = block(parts[0]) + STOPPED + "".join(STOPPED if part == "!" else block(part) for part in parts[1:])
    await chat(server, sandbox, "one", "anthropic", f"{key_of(events=body, fault='cut_mid_stream')},position=9")

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == (ended, parts.rstrip("!\n")), seen[-1]


async def test_anthropic_events_that_are_not_understood_are_skipped(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    odd = [event(), event(type=None), event(type="x"), block(None), block(True), event(type="content_block_delta")]
    odd += [event(type="message_start", message=None), event(type="message_delta", delta=None), "data: []\n\n"]
    late = event(type="error", error="too late")
    start = event(type="content_block_start", index=0, content_block={"type": "text", "text": "["})
    body = start + "".join(block("o") + each for each in odd) + STOPPED + late
    await chat(server, sandbox, "one", "anthropic", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "[" + "o" * len(odd)), seen[-1]


async def test_the_last_event_of_anthropic_may_lack_its_end(talk: Talk, server: Server, sandbox: Running) -> None:
    await chat(server, sandbox, "one", "anthropic", key_of(events=block("Hello.") + STOPPED.rstrip()))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]


async def test_turns_without_an_answer_do_not_repeat_a_role(talk: Talk, server: Server, sandbox: Running) -> None:
    """Chat templates such as those of Mistral and Gemma refuse two user messages in a row."""
    await chat(server, sandbox, "silent", "vendor_b_llm", key_of(fault="hang_before_output"))
    await chat(server, sandbox, "strict", "vendor_b_llm", key_of(refuses="repeated_roles"))
    await talk.turn("One", "strict")
    async with talk.say("Two", "silent") as response:
        reading = events(response)
        await until(lambda: len(list(sandbox.bill.since(0))) == 2)
        async with talk.delete(f"/bp/ai/stream/{response.headers['X-Service-Stream-Id']}") as canceled:
            assert canceled.status == 200
        ended = [event async for event in reading]
    assert ended[-1].content["finish_reason"] == "canceled"
    newest = (await talk.history())["conversation_records"][0]
    assert newest["status"] == "interrupted"

    seen = await talk.turn("Three", "strict")

    assert seen[-1].name == "end", seen[-1]
