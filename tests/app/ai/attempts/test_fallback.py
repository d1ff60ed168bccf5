"""Strategies are tried in order (§4.17)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import named
from tests.peers.vendor import Vendor
from tests.running.servers import Databases, Server, new_server

WAITS = {"first_output_s": 0.3, "between_s": 0.3}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize("model", ["refuse:500", "refuse:401", "hang", "silent", "empty", "cut:", "error:"])
async def test_the_next_strategy_answers_when_one_fails_before_its_first_output(
    talk: Talk, strategy, vendor: Vendor, model: str
) -> None:
    await strategy("bad", model, waits=WAITS)
    await strategy("good", "say:Here I am")
    seen = await talk.turn("Hello", "bad", "good")
    assert seen[-1].name == "end", seen[-1]
    assert seen[-1].content["strategy"] == "good"
    [failed] = seen[-1].content["attempts"]
    assert (failed["strategy"], failed["stage"], failed["error_type"]) == ("bad", "llm", "backend_unavailable")
    assert failed["message"].startswith("backend_unavailable: vendor_b_llm ")
    assert [segment["text"] for segment in named(seen, "assistant_output_content_segment")] == ["Here I am"]


async def test_unknown_and_broken_strategies_are_failed_attempts(talk: Talk, strategy, server: Server) -> None:
    await strategy("good", "say:Here I am")
    await server.services.configs.put(
        "default",
        "conversation",
        "broken",
        {"chat": {"account": "nowhere", "model": "x"}},
        author="test",
        origin=COMMAND,
    )
    seen = await talk.turn("Hello", "unknown", "broken", "good")
    assert seen[-1].content["strategy"] == "good"
    assert [failed["strategy"] for failed in seen[-1].content["attempts"]] == ["unknown", "broken"]
    assert "attempts" not in (await talk.turn("Hello", "good"))[-1].content


async def test_the_final_error_lists_all_attempts_and_keeps_the_users_message(talk: Talk, strategy) -> None:
    await strategy("one", "refuse:503")
    await strategy("two", "silent", waits=WAITS)
    seen = await talk.turn("Hello", "one", "two")
    assert [event.name for event in seen] == ["start", "user_input", "error"]
    error = seen[-1].content["error"]
    assert error["error_type"] == "all_strategies_failed"
    attempts = error["extra"]["attempts"]
    assert [(a["strategy"], a["stage"], a["error_type"]) for a in attempts] == [
        ("one", "llm", "backend_unavailable"),
        ("two", "llm", "backend_unavailable"),
    ]
    assert all(a["message"].startswith("backend_unavailable: vendor_b_llm ") for a in attempts)
    assert attempts[1]["elapsed_ms"] >= 300
    assert error["extra"]["record_id"] == 1
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "failed"
    assert [message["role"] for message in record["content"]] == ["user"]
    await strategy("good", "say:Fine")
    assert (await talk.turn("Again", "good"))[-1].content["record_id"] == 2


@pytest.mark.parametrize("model", ["cut:Half an answer", "error:Half an answer", "slow:Half an answer"])
async def test_after_the_first_output_no_other_strategy_is_tried(
    talk: Talk, strategy, vendor: Vendor, model: str
) -> None:
    await strategy("half", model, waits=WAITS)
    await strategy("good", "say:Here I am")
    seen = await talk.turn("Hello", "half", "good")
    assert seen[-1].name == "error"
    assert seen[-1].content["error"]["error_type"] == "backend_unavailable"
    text = "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))
    assert "Half an answer".startswith(text)
    assert text
    assert not named(seen, "assistant_output_content_segment")
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "incomplete"
    assert record["content"][1]["content"][0]["text"] == text
    assert [call["model"] for call in vendor.calls] == [model]


async def test_the_connection_of_a_failed_strategy_is_closed(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("hangs", "hang", waits=WAITS)
    await strategy("good", "say:Here I am")
    await talk.turn("Hello", "hangs", "good")
    async with asyncio.timeout(1):
        await vendor.gone.wait()
    assert vendor.closed == ["hang"]


async def test_a_late_strategy_is_hedged_and_the_faster_one_answers(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("late", "silent", hedge_after_ms=20)
    await strategy("quick", "say:Here I am")
    seen = await talk.turn("Hello", "late", "quick")
    assert seen[-1].content["strategy"] == "quick"
    async with asyncio.timeout(1):
        await vendor.gone.wait()
    assert vendor.closed == ["silent"]


async def test_an_account_that_keeps_failing_is_not_called_for_a_while(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    account = {"platform": "vendor_b_llm", "base_url": vendor.url, "breaker": {"min_calls": 2}}
    await server.services.configs.put("default", "vendor_accounts", "shaky", account, author="test", origin=COMMAND)
    await strategy("bad", "refuse:401", account="shaky")
    await strategy("good", "say:Here I am")
    for _ in range(4):
        assert (await talk.turn("Hello", "bad", "good"))[-1].content["strategy"] == "good"
    assert [call["model"] for call in vendor.calls].count("refuse:401") == 2


async def test_a_failing_account_is_tried_again_while_calls_are_skipped(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    breaker = {"min_calls": 2, "open_s": 1}
    account = {"platform": "vendor_b_llm", "base_url": vendor.url, "breaker": breaker}
    await server.services.configs.put("default", "vendor_accounts", "shaky", account, author="test", origin=COMMAND)
    await strategy("bad", "refuse:401", account="shaky")
    await strategy("good", "say:Here I am")
    turns = 0
    async with asyncio.timeout(20):
        while [call["model"] for call in vendor.calls].count("refuse:401") < 3:
            await talk.turn("Hello", "bad", "good")
            turns += 1
    assert turns > 3


async def test_a_cut_answer_is_restarted_by_the_next_strategy_if_enabled(
    talk: Talk, strategy, vendor: Vendor
) -> None:
    await strategy("half", "cut:One.||Half an", on_break="restart", paragraph_delimiter="||")
    await strategy("good", "say:Here I am")
    seen = await talk.turn("Hello", "half", "good")
    names = [event.name for event in seen]
    restart = names.index("assistant_output_restart")
    assert seen[restart].content == {"from_index": 0}
    assert named(seen[:restart], "assistant_output_content_segment") == [{"index": 0, "text": "One."}]
    assert "".join(c["text"] for c in named(seen[restart:], "assistant_output_chunk")) == "Here I am"
    end = seen[-1].content
    assert (end["strategy"], end["finish_reason"]) == ("good", "stop")
    every = "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))
    assert end["digest"]["chars"] == len(every)
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "complete"
    assert [item["text"] for item in record["content"][1]["content"]] == ["Here I am"]


async def test_a_break_is_reported_if_no_strategy_can_continue(talk: Talk, strategy) -> None:
    await strategy("half", "cut:Half an", on_break="restart")
    await strategy("bad", "refuse:503")
    seen = await talk.turn("Hello", "half", "bad")
    assert seen[-1].content["error"]["error_type"] == "backend_unavailable"
    assert (await talk.history())["conversation_records"][0]["status"] == "failed"


async def test_answers_are_not_continued_by_models_without_prefill(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("half", "cut:Half an", on_break="continue")
    await strategy("good", "say:Here I am")
    seen = await talk.turn("Hello", "half", "good")
    assert seen[-1].name == "error"
    assert [call["model"] for call in vendor.calls] == ["cut:Half an"]


async def test_vendor_messages_never_contain_our_key(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("bad", "echo")
    seen = await talk.turn("Hello", "bad")
    attempt = seen[-1].content["error"]["extra"]["attempts"][0]
    assert attempt["message"] == "backend_unavailable: vendor_b_llm answered 401: wrong key Bearer *** given"


async def test_vendors_get_the_request_id(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("one", "say:Fine")
    talk.headers["X-Request-Id"] = "my-request-1"
    await talk.turn("Hello", "one")
    assert vendor.request_ids == ["my-request-1"]


async def test_a_retry_is_not_advised_if_it_cannot_help(talk: Talk, strategy) -> None:
    await strategy("bad", "refuse:401")
    assert (await talk.turn("Hello", "bad"))[-1].content["error"]["extra"]["retryable"] is False
    await strategy("shaky", "refuse:503")
    assert (await talk.turn("Hello", "bad", "shaky"))[-1].content["error"]["extra"]["retryable"] is True


@pytest.mark.parametrize("usage", [-5, 3_000_000_000, True, "7"])
async def test_implausible_token_counts_are_ignored(talk: Talk, strategy, vendor: Vendor, usage) -> None:
    vendor.prompt_tokens = usage
    await strategy("one", "say:Fine words")
    end = (await talk.turn("Hello", "one"))[-1].content
    assert (end["unit_price"]["input_token"], end["unit_price"]["output_token"]) == (2, 3)


async def test_a_blank_reply_is_a_failed_attempt(talk: Talk, strategy) -> None:
    await strategy("blank", "say: \n \t ")
    await strategy("good", "say:Here I am")
    assert (await talk.turn("Hello", "blank", "good"))[-1].content["strategy"] == "good"


async def test_an_answer_without_end_is_cut_at_its_limit(talk: Talk, strategy, server: Server) -> None:
    await server.services.configs.put(
        "default", "limits", "default", {"answer_bytes": 1024}, author="test", origin=COMMAND
    )
    await strategy("long", "many:20000")
    seen = await talk.turn("Hello", "long")
    assert seen[-1].content["finish_reason"] == "length"
    assert seen[-1].content["digest"]["chars"] < 60_000


async def test_answers_end_at_the_maximum_length(talk: Talk, strategy, server: Server) -> None:
    await server.services.configs.put(
        "default", "limits", "default", {"answer_bytes": 1024}, author="test", origin=COMMAND
    )
    await strategy("long", "say:" + "ä" * 5_000)
    seen = await talk.turn("Hello", "long")
    assert seen[-1].content["finish_reason"] == "length"
    assert "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk")) == "ä" * 512


class TestSpoken:
    """On a separate server, which has the local engines."""

    @pytest.fixture
    async def server(self, databases: Databases, local_vendors: str, tmp_path: Path) -> AsyncIterator[Server]:
        async with new_server(databases, tmp_path, local_url=local_vendors) as running:
            yield running

    async def test_a_restarted_answer_is_spoken_again_by_the_same_voice(self, talk: Talk, strategy) -> None:
        await strategy("half", "cut:One sentence. Two sentences. And then", on_break="restart", speech="local")
        await strategy("good", "say:Here I am. All is well.", speech="local")
        seen = await talk.turn("Hello", "half", "good")
        assert seen[-1].name == "end"
        assert len(named(seen, "assistant_output_audio_first_sentence_enabled")) == 1
        restart = [event.name for event in seen].index("assistant_output_restart")
        assert named(seen[restart:], "assistant_output_audio_chunk")[0]["mime_type"] == "audio/mpeg"
        assert [audio["index"] for audio in named(seen[restart:], "assistant_output_audio")] == [0]

    async def test_audio_of_discarded_words_is_not_recorded(self, talk: Talk, strategy) -> None:
        half = "cut:One sentence.||Two sentences. And a third one. And then"
        await strategy("half", half, on_break="restart", speech="local", paragraph_delimiter="||")
        await strategy("good", "say:Here I am. All is well.")
        seen = await talk.turn("Hello", "half", "good")
        assert seen[-1].name == "end"
        content = (await talk.history())["conversation_records"][0]["content"][1]["content"]
        assert [item["type"] for item in content] == ["text"]
