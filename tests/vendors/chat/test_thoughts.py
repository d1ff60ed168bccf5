"""The thoughts of a model are left out, wherever a reply is split, and no other text is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streams.pieces import split
from vendors.chat.thoughts import Thoughts


def said(deltas: list[str], *, begins_inside: bool = False) -> tuple[str, bool]:
    """Return the text that is not withdrawn, and whether any was."""
    thoughts = Thoughts(begins_inside=begins_inside)
    text, withdrawn = "", False
    for delta in deltas:
        text += thoughts.feed(delta)
        if thoughts.were_shown:
            text, withdrawn, thoughts.were_shown = "", True, False
    return text + thoughts.end(), withdrawn


THOUGHTS = [
    ("<think>Hm.</think>Hello.", "Hello."),
    ("  \n<think>\nHm. 1<2 </b>\n</think>\n\n Hello. ", "Hello. "),
    ("<THINKING>Hm.</Thinking>\nA\n<think>B</think>\nC", "A\nC"),
    ("<thought>Hm.</thought>Hi", "Hi"),
    ("[THINK]Hm.[/THINK]Hi [1]", "Hi [1]"),
    ("◁think▷Hm.◁/think▷Hi", "Hi"),
    ("<seed:think>Hm.</seed:think>Hi", "Hi"),
    ("<think >Hm.</think\n>Hi", "Hi"),
    ("<think>Hm.</think>One</think>Two", "OneTwo"),
    ("<think>a<think>b</think>c</think>Hi", "cHi"),
    ("<think>a</think><think>b</think>Hi", "Hi"),
    ("<think>a</think>\n</think>\nHi", "Hi"),
    ("Sure. <think>secret plan</think>Answer.", "Sure. Answer."),
    ("<think>a</think>Hi there. <think>secret plan</think>Bye now.", "Hi there. Bye now."),
    ("\u200b<think>Hm.</think>Hi", "Hi"),
    ("\ufeff<think>Hm.</think>Hi", "Hi"),
    ("> <think>Hm.</think>\nHi", "Hi"),
    ("**<think>Hm.</think>**Hi", "Hi"),
    ("**<think>Hm.</think>** **Bold** words", "**Bold** words"),
    ("</think>\n\nHi", "Hi"),
    ('<think>I write `</think>` or "</think>" here.</think>Hi', "Hi"),
    ('<think>He said "hi"</think>"Hello"', '"Hello"'),
    ('<think>a</think>Use x.split("</think>")[-1] here.', 'Use x.split("</think>")[-1] here.'),
    ("<think>a</think>The tags <think> and </think> mark.", "The tags <think> and </think> mark."),
    ("<think>never closed", ""),
]
TEXTS = [
    "Say <think> or `</think>`.",
    "The tags <think> and </think> mark reasoning of models",
    "1. <think> begins a thought",
    "Thoughts end with </think> which is a tag",
    "Hm. So</think>Hello.",
    'He wrote "<think>" and "</think>".',
    '```python\nanswer = text.split("</think>")[-1]\n```',
    "```\n<think>\nHm.\n</think>\n```\nHi",
    "~~~~\n</think>\n~~~\n</think>\n~~~~\n",
    "The answer prints this: ```\n<think>\nHm.\n</think>\n```\nHi",
    "The model first prints\n<think>\nand then it reasons. At last it answers.",
    "It first prints `<think>`, and then\n</think>\nbefore the answer.",
    "1 < 2 <thin <thinker> [THIN [think] ◁ <",
    "[A link](https://example.org) and a [",
    "**Bold**, *slanted* and > quoted",
    " \n",
    "**",
    "",
]


@pytest.mark.parametrize(("reply", "answer"), THOUGHTS + [(text, text) for text in TEXTS])
@given(st.lists(st.integers(0, 80), max_size=6))
def test_thoughts_are_left_out_at_every_split(reply: str, answer: str, at: list[int]):
    assert said([reply]) == said(list(reply)) == said(split(reply, at)) == (answer, False)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("Hm.\n</think>\n\nHello.", "Hello."), ("<think>Hm.</think>Hello.", "Hello."), ("No tag. <b", "No tag. <b")],
)
@given(st.lists(st.integers(0, 60), max_size=6))
def test_text_is_held_back_until_a_closing_tag_if_the_operator_says_so(reply: str, answer: str, at: list[int]):
    assert said(split(reply, at), begins_inside=True) == said(list(reply), begins_inside=True) == (answer, False)


@given(st.lists(st.integers(2, 60), min_size=1, max_size=6))
def test_a_thought_that_was_shown_is_withdrawn(at: list[int]):
    reply = "Hm. So.\n</think>\n\nHello. </think> is a tag."

    assert said([reply]) == ("Hello. </think> is a tag.", False)
    assert said(split(reply, at))[0] == said(list(reply))[0] == "Hello. </think> is a tag."
    assert said(list(reply))[1]


@given(
    st.lists(st.sampled_from(["<", "think", ">", "/", "a", " ", "`", "\n", "ing", "[", "**"]), max_size=20),
    st.booleans(),
)
def test_replies_without_tags_are_unchanged(parts: list[str], begins_inside: bool):
    text = "".join(parts)
    if "<think" not in text and "</think" not in text:
        assert said(parts, begins_inside=begins_inside) == (text, False)


def test_many_tags_are_read_in_linear_time():
    """Each of these takes minutes if the text before a tag is read again for each."""
    for reply in ("a `</think>` b" * 50_000, "<think>" * 50_000, "\n<think>" + "`</think>`" * 50_000):
        said([reply])
    assert said(['x "</think>" '] * 50_000)[0] == 'x "</think>" ' * 50_000
