"""The model gets the system prompt, the records of the history that fit, and the user's message."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.plays.prompt import build
from actors.plays.records import audio_item, source, text_item
from storage.conversations.conversations import Record, RecordStatus
from streams.wire.codec import dumps
from vendors.calls.meter import estimated_tokens
from vendors.protocols import ChatMessage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
USER, MODEL = source("user"), source("vendor_b_llm", "m1")


def message(role: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(items)}


def record(number: int, *messages: dict[str, Any], status: RecordStatus = "complete") -> Record:
    return Record(number, status, "s", dumps(list(messages)), NOW, NOW)


def turn(number: int, requested: str, answered: str, status: RecordStatus = "complete") -> Record:
    return record(
        number,
        message("user", text_item(requested, USER)),
        message("assistant", text_item(answered, MODEL)),
        status=status,
    )


def built(
    *history: Record, system: str = "", text: str = "now", tokens: int = 1000, **params: Any
) -> list[ChatMessage]:
    return build(system, params, history, text, context_tokens=tokens)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé", 2), ("你好", 3), ("😀😀", 5)]
)
def test_tokens_are_estimated_by_script_and_rounded_up(text: str, tokens: int):
    assert estimated_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "fewest", "most"),
    [
        ("", 0, 0),
        ("The weather has been lovely this week, so we walked along the river.", 15, 15),
        ("这个星期天气一直很好。所以我们沿着河边散步。回家之前在一家小咖啡馆停了一会儿。", 20, 51),
        ("今週はずっと天気がよかったので、川沿いを散歩して、家に帰る前に小さな喫茶店に寄りました。", 35, 51),
        ("이번 주는 날씨가 정말 좋아서 강변을 따라 산책하고 집에 가기 전에 작은 카페에 들렀어요.", 30, 60),
        ("На этой неделе погода была прекрасная, поэтому мы гуляли вдоль реки.", 19, 37),  # noqa: RUF001
        ("كان الطقس جميلاً هذا الأسبوع، لذلك مشينا على طول النهر.", 17, 52),
        ("😀🎉🔥✨", 5, 10),
    ],
)
def test_the_estimate_is_near_what_models_count(text: str, fewest: int, most: int):
    """They are the least and most of cl100k_base, o200k_base, and the tokenizers of Claude 2 and DeepSeek."""
    assert most * 0.7 <= estimated_tokens(text) <= 3 * fewest


@given(st.text())
def test_the_estimate_grows_with_the_text(text: str):
    assert (
        estimated_tokens(text)
        <= estimated_tokens(text + "é")
        <= estimated_tokens(text + "é你")
        < estimated_tokens(text) + 4
    )


def test_the_newest_records_are_kept_in_chronological_order():
    messages = built(turn(2, "q2", "a2"), turn(1, "q1", "a1"), system="Be kind.")

    assert messages == [
        ChatMessage("system", "Be kind."),
        ChatMessage("user", "q1"),
        ChatMessage("assistant", "a1"),
        ChatMessage("user", "q2"),
        ChatMessage("assistant", "a2"),
        ChatMessage("user", "now"),
    ]


def test_system_prompt_is_rendered_with_the_parameters_and_left_out_when_empty():
    assert built(system="Speak to {{.name}}.", name="Ada")[0] == ChatMessage("system", "Speak to Ada.")
    assert built(system="{{.nobody}}") == [ChatMessage("user", "now")]


def test_user_text_is_not_rendered_as_a_template():
    assert built(text="{{.name}}", name="Ada") == [ChatMessage("user", "{{.name}}")]


@pytest.mark.parametrize(("tokens", "kept"), [(1, 0), (21, 0), (22, 1), (41, 1), (42, 2), (1000, 2)])
def test_complete_records_are_included_within_the_token_budget(tokens: int, kept: int):
    history = [turn(2, "q" * 40, "a" * 40), turn(1, "q" * 40, "a" * 40)]

    messages = built(*history, system="sy", text="use", tokens=tokens)

    assert len(messages) == 2 + 2 * kept
    assert (messages[0].role, messages[-1].content) == ("system", "use")


def test_the_history_ends_at_the_first_record_that_does_not_fit():
    history = [turn(3, "q3", "a3"), turn(2, "q" * 400, "a2"), turn(1, "q1", "a1")]

    assert [m.content for m in built(*history, tokens=50)] == ["q3", "a3", "now"]


@given(st.lists(st.text("aé", max_size=30), max_size=8), st.integers(1, 60))
def test_the_history_never_exceeds_its_token_budget(texts: list[str], tokens: int):
    history = [turn(number, text, text[::-1]) for number, text in enumerate(texts)]

    messages = built(*history, system="system", text="now", tokens=tokens)

    used = sum(estimated_tokens(m.content) for m in messages)
    assert used <= tokens or [m.content for m in messages] == ["system", "now"]


@pytest.mark.parametrize(
    ("status", "kept"),
    [("complete", True), ("incomplete", True), ("interrupted", True), ("failed", False), ("running", False)],
)
def test_only_completed_messages_are_history(status: RecordStatus, kept: bool):
    assert len(built(turn(2, "q2", "a2", status), turn(1, "q1", "a1"))) == (5 if kept else 3)


def test_failed_records_use_no_prompt_tokens():
    history = [turn(2, "q" * 4000, "", "failed"), turn(1, "q1", "a1")]

    assert [m.content for m in built(*history, tokens=10)] == ["q1", "a1", "now"]


def test_paragraphs_of_an_answer_are_joined_by_their_delimiters_and_audio_is_left_out():
    answer = message(
        "assistant",
        text_item("One.", MODEL, delimiter="\n\n"),
        audio_item("k0", MODEL),
        text_item("Two.", MODEL),
        audio_item("k1", MODEL),
    )
    history = record(1, message("user", text_item("spoken", USER), audio_item("u", USER)), answer)

    assert built(history) == [
        ChatMessage("user", "spoken"),
        ChatMessage("assistant", "One.\n\nTwo."),
        ChatMessage("user", "now"),
    ]


def test_turn_without_an_answer_keeps_the_users_words():
    history = record(1, message("user", text_item("q1", USER)), status="interrupted")

    assert built(history) == [ChatMessage("user", "q1"), ChatMessage("user", "now")]
