"""Thoughts of language models are neither shown nor stored, and no answer loses text because it looks like one."""

import asyncio
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.attempts.odd_events import DONE, END, STOPPED, block, candidate, delta, event, said_by
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import MODELS, chat
from tests.peers.sse_client import SeenEvent, named
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def strategy(server: Server, name: str, platform: str = "vendor_b_llm", **fields: Any) -> None:
    value = {"chat": {"account": name, "model": MODELS[platform], **fields}}
    await server.services.configs.put("default", "conversation", name, value, author="test", origin=COMMAND)


def restarts(seen: list[SeenEvent]) -> int:
    return len(named(seen, "assistant_output_restart"))


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (delta("<think>Hm. 1 < 2.\n</think>\n\nHello."), "Hello."),
        ("".join(map(delta, "\n<thinking>Hm.</thinking>\n\nHello, <b> 1<2 <thin")), "Hello, <b> 1<2 <thin"),
        (delta("<th", "stop") + delta("ink>secret</th", "stop") + delta("ink>Hello.", "stop"), "Hello."),
        (delta("Sure. <think>secret plan</think>Hello."), "Sure. Hello."),
        (delta("The model first prints\n<think>\nand ") + delta("then it reasons."),
         "The model first prints\n<think>\nand then it reasons."),
        (delta("The tags <think> ") + delta("and </think> mark thoughts."),
         "The tags <think> and </think> mark thoughts."),
        (delta('```python\na = text.split("') + delta('</think>")[-1]\n```'),
         '```python\na = text.split("</think>")[-1]\n```'),
        (delta("Put `<think>` and `</think>` around it, not <think>."),
         "Put `<think>` and `</think>` around it, not <think>."),
        ("".join(map(delta, ["<think>Hm.</think>Hi.", "\n<th", "ink>secret", "</think>\nHo", "<think>b</think>!"])),
         "Hi.\nHo!"),
        (delta("<|begin_of_thought|>Hm.") + delta("<|end_of_thought|>Hello."), "Hello."),
        (delta('<think type="') + delta('x">Hm.</think><mm:think>a</mm:think>[THINK]b[/THINK]Hello.'), "Hello."),
        (delta("<think>Hm.</think>[Think](https://e.org): ```\n<think>\n") + delta("</think>\n```\nHello."),
         "[Think](https://e.org): ```\n<think>\n</think>\n```\nHello."),
    ],
)  # fmt: skip
async def test_only_thoughts_are_left_out(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body + END + DONE))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen), restarts(seen)) == ("end", answer, 0), seen[-1]
    assert len(list(sandbox.bill.since(0))) == 1


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (delta("Hello <thi"), "Hello <thi"),
        (delta("a < b, a <"), "a < b, a <"),
        (delta("Hello.") + delta("\n<think>Hm. </thi"), "Hello."),
        (delta("Hello. ") + delta("[").strip(), "Hello. ["),
    ],
)
async def test_a_cut_loses_no_text_that_may_have_been_the_start_of_a_tag(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", f"{key_of(events=body, fault='cut_mid_stream')},position=9")

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("error", answer), seen[-1]


async def test_the_start_of_a_tag_alone_is_no_output_of_a_cut_reply(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    cut = f"{key_of(events=delta('<thi'), fault='cut_mid_stream')},position=1"
    await chat(server, sandbox, "one", "vendor_b_llm", cut)
    await chat(server, sandbox, "two", "vendor_b_llm", key_of(text="Hello."))

    seen = await talk.turn("Hello", "one", "two")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]


@pytest.mark.parametrize("rest", ["</think>\n\n", "\n</think>"])
async def test_a_thought_without_an_opening_tag_is_withdrawn_within_its_reply(
    talk: Talk, server: Server, sandbox: Running, rest: str
) -> None:
    body = delta("Hm. So\n") + delta(rest) + delta("Hel") + delta("lo.", "stop") + DONE
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body, pace_ms=250))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen), restarts(seen)) == ("end", "Hello.", 1), seen[-1]
    (record,) = (await talk.history())["conversation_records"]
    assert [item["text"] for item in record["content"][1]["content"]] == ["Hello."]
    assert len(list(sandbox.bill.since(0))) == 1


async def test_a_reply_of_only_a_withdrawn_thought_is_an_error(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    body = delta("Let me think.\n") + delta("</think>", "stop") + DONE
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body, pace_ms=50), on_break="restart")
    await chat(server, sandbox, "two", "vendor_b_llm", key_of(text="Hello."))

    seen = await talk.turn("Hello", "one", "two")
    alone = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]
    assert seen[-1].content["attempts"][0]["message"] == "backend_unavailable: vendor_b_llm sent an empty response"
    assert (alone[-1].name, said_by(alone), restarts(alone)) == ("error", "", 1)
    records = (await talk.history())["conversation_records"]
    texts = [[item["text"] for message in record["content"] for item in message["content"]] for record in records]
    assert sorted(texts) == [["Hello"], ["Hello", "Hello."]], "the thought is not stored"


async def test_a_reply_does_not_change_how_others_are_streamed(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    """All users of a strategy share what is learned from a reply, and a user can choose its text."""
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(pace_ms=250))
    other = Talk(server, *await server.login())

    poison = await talk.turn("Say </think> please", "one")
    seen = await other.turn("B C D", "one")

    assert (said_by(poison), restarts(poison)) == ("You said: Say </think> please", 0)
    assert (said_by(seen), restarts(seen)) == ("You said: B C D", 0)
    assert len(named(seen, "assistant_output_chunk")) > 1, "its text is not held back"


@pytest.mark.parametrize(
    ("options", "text", "answer"),
    [
        ({"begins_with_thought": True}, "No thoughts at all.", "No thoughts at all."),
        ({"begins_with_thought": True}, "Hm. So</think> Hello.", "Hello."),
        ({"hide_thoughts": False}, "<think>Hm.</think> Hello.", "<think>Hm.</think> Hello."),
    ],
)
async def test_the_operator_decides_on_thoughts(
    talk: Talk, server: Server, sandbox: Running, *, options: dict[str, Any], text: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(text=text))
    await strategy(server, "one", options=options)

    seen = await talk.turn("Hello", "one")

    assert (said_by(seen), restarts(seen)) == (answer, 0)


@pytest.mark.parametrize("platform", ["anthropic", "gemini"])
async def test_compatible_hosts_of_all_protocols_send_thoughts_in_the_text(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    def body(*texts: str) -> str:
        events = map(block, texts) if platform == "anthropic" else (candidate(text, None) for text in texts)
        return "".join(events) + (STOPPED if platform == "anthropic" else candidate(""))

    tagged, shown = "<think>Hm.</think>Hello.", body("Hm.", "\n</think>", "\n\nHel", "lo.")
    for name, events, options in [
        ("default", body("<th", "ink>Hm.</th", "ink>Hel", "lo."), {}),
        ("off", body(tagged), {"hide_thoughts": False}),
        ("withdrawn", shown, {}),
        ("held", shown, {"begins_with_thought": True}),
    ]:
        await chat(server, sandbox, name, platform, key_of(events=events, pace_ms=50))
        await strategy(server, name, platform, options=options)

    seen = {name: await talk.turn("Hello", name) for name in ("default", "off", "withdrawn", "held")}

    assert {name: (said_by(events), restarts(events)) for name, events in seen.items()} == {
        "default": ("Hello.", 0), "off": (tagged, 0), "withdrawn": ("Hello.", 1), "held": ("Hello.", 0),
    }  # fmt: skip


async def test_a_reply_of_an_unfinished_thought_is_an_error(talk: Talk, server: Server, sandbox: Running) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=delta("<think>Hm.", "length") + DONE))

    seen = await talk.turn("Hello", "one")

    assert seen[-1].name == "error"
    assert "sent an empty response" in seen[-1].content["error"]["extra"]["attempts"][0]["message"]


def reasoning(**fields: Any) -> str:
    return event(choices=[{"index": 0, "delta": {"content": None, **fields}}])


THINKING = {
    "tags": ("vendor_b_llm", delta("<think>") + delta("Hm. ") * 7 + delta("</think>Hello.", "stop")),
    "field": ("vendor_b_llm", reasoning(reasoning_content="Hm. ") * 8 + delta("Hello.", "stop")),
    "parts": ("vendor_b_llm", delta([{"type": "thinking", "thinking": []}]) * 8 + delta("Hello.", "stop")),
    "anthropic": ("anthropic", block("Hm. ", "thinking") * 8 + block("Hello.") + STOPPED),
    "gemini": ("gemini", candidate("Hm. ", None, thought=True) * 8 + candidate("Hello.")),
}


async def test_thoughts_extend_the_wait_for_the_first_output(talk: Talk, server: Server, sandbox: Running) -> None:
    waits = {"first_output_s": 1, "between_s": 1}
    silent = event() * 12 + delta("Hello.", "stop")
    for name, (platform, body) in {**THINKING, "silent": ("vendor_b_llm", silent)}.items():
        await chat(server, sandbox, name, platform, key_of(events=body, pace_ms=250))
        await strategy(server, name, platform, waits=waits)

    async def turn(name: str) -> tuple[str, str]:
        seen = await Talk(server, *await server.login()).turn("Hello", name)
        return seen[-1].name, said_by(seen)

    seen = await asyncio.gather(*map(turn, [*THINKING, "silent"]))

    assert seen == [("end", "Hello.")] * len(THINKING) + [("error", "")]
