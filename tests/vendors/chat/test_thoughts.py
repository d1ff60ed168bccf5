"""The thoughts of a model are left out, wherever a reply is split, and no other text is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streams.pieces import split
from vendors.chat.thoughts import Habit, Thoughts


def said(deltas: list[str], *, begins_inside: bool = False) -> tuple[str, bool]:
    thoughts = Thoughts(Habit(begins_inside))
    text = ""
    for delta in deltas:
        text += thoughts.feed(delta)
        if thoughts.were_shown:
            return "", True
    return text + thoughts.end(), False


REPLIES = [
    ("<think>Hm.</think>Hello.", "Hello."),
    ("  \n<think>\nHm. 1<2 </b>\n</think>\n\n Hello. ", "  \nHello. "),
    ("<THINKING>Hm.</Thinking>\nA\n<think>B</think>\nC", "A\nC"),
    ("<think>Hm.</think>One</think>Two", "OneTwo"),
    ("<think>never closed", ""),
    ("Say <think> or `</think>`.", "Say <think> or `</think>`."),
    ("1 < 2 <thin <thinker> <", "1 < 2 <thin <thinker> <"),
    ("", ""),
]


@pytest.mark.parametrize(("reply", "answer"), REPLIES)
@given(st.lists(st.integers(0, 60), max_size=6))
def test_thoughts_are_left_out_at_every_split(reply: str, answer: str, at: list[int]):
    assert said([reply]) == said(list(reply)) == said(split(reply, at)) == (answer, False)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("Hm.\n</think>\n\nHello.", "Hello."), ("<think>Hm.</think>Hello.", "Hello."), ("No tag. <b", "No tag. <b")],
)
@given(st.lists(st.integers(0, 60), max_size=6))
def test_text_before_an_unopened_tag_is_held_back_if_that_is_known(reply: str, answer: str, at: list[int]):
    assert said(split(reply, at), begins_inside=True) == said(list(reply), begins_inside=True) == (answer, False)


def test_a_shown_thought_is_reported_and_the_next_reply_is_held_back():
    habit = Habit()
    thoughts = Thoughts(habit)

    assert thoughts.feed("Hm. ") == "Hm. "
    thoughts.feed("So.</think>Hello.")

    assert thoughts.were_shown
    assert habit.begins_inside


@given(st.lists(st.sampled_from(["<", "think", ">", "/", "a", " ", "`", "\n", "ing"]), max_size=20), st.booleans())
def test_replies_without_tags_are_unchanged(parts: list[str], begins_inside: bool):
    text = "".join(parts)
    if "<think" not in text and "</think" not in text:
        assert said(parts, begins_inside=begins_inside) == (text, False)
