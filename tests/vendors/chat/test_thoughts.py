"""The thoughts of a model are left out, wherever a reply is split, and no other text is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.pieces import split
from tests.vendors.random_json import VERY_MANY
from vendors.account import Account
from vendors.catalog import CATALOG
from vendors.chat.thoughts import Thoughts

NO_TAGS = str.maketrans("<[◁", "{{{")


def said(deltas: list[str], *, begins_inside: bool = False, continues: str = "") -> tuple[str, bool]:
    """Return the text that is not withdrawn, and whether any was."""
    thoughts = Thoughts(begins_inside=begins_inside, continues=continues)
    text, withdrawn = "", False
    for delta in deltas:
        text += thoughts.feed(delta)
        if thoughts.were_shown:
            text, withdrawn, thoughts.were_shown = "", True, False
    rest = thoughts.end()
    return (rest, True) if thoughts.were_shown else (text + rest, withdrawn)


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
    ("<think>a</think>Hi<think>b</think>Ho", "HiHo"),
    ("<think>a</think>Hi.<think>b</think> Ho", "Hi. Ho"),
    ("Hi there.\n\n<think>a</think>\n\nHo.\n<think>b</think>\nBye", "Hi there.\n\nHo.\nBye"),
    ("Hello,<think>a</think> you\U0001f600<think>b</think> there", "Hello, you\U0001f600 there"),
    ("<think>a</think>Say <think>b</think> now", "Say <think>b</think> now"),
    ("<think>a</think>标签<think>和</think>表示思考", "标签<think>和</think>表示思考"),
    ("<think>I write <reasoning>x</reasoning> then</think>Hi", "Hi"),
    ("<reasoning>Put </think> behind it.</reasoning>Hi", "Hi"),
    ('<think>ends with "</think>', ""),
    ("<think/>Hi", "Hi"),
    ("Sure, here: <think>hmm</think>Here it is.", "Sure, here: Here it is."),
    ("Well, <think>hmm</think>yes.", "Well, yes."),
    ("- <think>hmm</think>Here\n2. <think>hmm</think>There", "- Here\n2. There"),
    ("你好，<think>嗯</think>世界", "你好，世界"),  # noqa: RUF001 - its own comma
    ("Hello.\n\n1. One:\n\n   <think>a</think>Two", "Hello.\n\n1. One:\n\n   Two"),
]
FORMS = [
    *((f"<{name}>", f"</{name}>") for name in (
        "thinking", "thought", "thoughts", "reasoning", "seed:think", "mm:think", "longcat_think", "ant_thinking",
        "antThinking", "Think", "REASONING",
    )),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[think]", "[/think]"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ('<think type="x">', "</think>"),
    ("<think id='1'  lang=en >", "</think >"),
    ("< think >", "</ think>"),
    ("<think\n>", "< / think >"),
]  # fmt: skip
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
    "[Think](https://example.org) and [think]",
    "[think]: https://example.org",
    "<think of a number> is what I do, </think of it>.",
    "Thoughts end on a line of their own with\n</think> which is a tag",
    "Thoughts end with\n</think>, a tag.",
    "1. <think>\n2.<think>\n3. </think>",
    'Use x.split("<think>") or key=<think>, (<think>) or **<think>**.',
    "标签<think>和</think>表示思考",
    "**Bold**, *slanted* and > quoted",
    "Tags: <think> opens, </think> closes. Two: <think>, and <think>…</think>.",
    "- <think> opens\n- </think> closes",
    "For example:\n\n    <think>x</think>\n    y\n\n    <think>z</think>\n\nDone.",
    "For example:\n    <think>x</think>",
    "- One\n\n      <think>x</think>",
    "The tag is </think>\n\nIt ends a thought.",
    "标签是 </think>\n\n结束。",
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


@pytest.mark.parametrize(("opening", "closing"), FORMS)
@given(st.lists(st.integers(0, 80), max_size=6))
def test_every_form_of_tags_is_known(opening: str, closing: str, at: list[int]):
    reply = f"{opening}\nHm.\n{closing}\n\nHi.\n{opening}b{closing}\nHo. In code `{opening}b{closing}` stays."

    answer = f"Hi.\nHo. In code `{opening}b{closing}` stays."
    assert said([reply]) == said(list(reply)) == said(split(reply, at)) == (answer, False)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Hm. So.\n</think>\n\nHello. </think> is a tag.", "Hello. </think> is a tag."),
        ("Let me think.\n</think>", ""),
        ("Let me think.\n</think> \n", ""),
        ("Let me think.</think>", ""),
        ("Let me think.</think>\n\nHi", "Hi"),
        ("Let me think.\n\n</think>Hi", "Hi"),
        ("Let me think. </think>\n\nHi", "Hi"),
        ("用户说你好。我应该打招呼。</think>\n\n你好！", "你好！"),  # noqa: RUF001 - its own mark
        ("用户说你好</think>\n\n你好", "你好"),
        ("नमस्ते कहना है।</think>\n\nनमस्ते", "नमस्ते"),
        ("Let me think.\n</think>**Hi**", "**Hi**"),
        ("Let me think.\n\n</reasoning> Hi", "Hi"),
    ],
)
@given(st.lists(st.integers(2, 60), max_size=6))
def test_a_thought_that_was_shown_is_withdrawn(reply: str, answer: str, at: list[int]):
    assert said([reply])[0] == said(split(reply, at))[0] == answer
    assert said(list(reply)) == (answer, True)


def test_a_continuation_withdraws_nothing_and_begins_where_the_text_ends():
    for text, more, answer in (
        ("The tag ", "<think> is it.\n</think>\nso", "<think> is it.\n</think>\nso"),
        ("```\n", "<think>\n```\n<think>a</think>\nHi", "<think>\n```\nHi"),
        ("Hello.", " <think>a</think>Hi", " Hi"),
        ("Hello.", " <think>never closed", " <think>never closed"),
    ):
        for begins_inside in (False, True):
            assert said([more], begins_inside=begins_inside, continues=text) == (answer, False)


@pytest.mark.parametrize(
    ("url", "domain", "is_own"),
    [
        (CATALOG["anthropic"].base_url, "anthropic.com", True),
        (CATALOG["gemini"].base_url, "googleapis.com", True),
        ("https://europe-west4-aiplatform.googleapis.com/v1/projects/p", "googleapis.com", True),
        ("https://notanthropic.com", "anthropic.com", False),
        ("https://example.org/anthropic.com", "anthropic.com", False),
    ],
)
def test_the_hosts_of_a_vendor_are_known_by_their_domain(url: str, domain: str, is_own: bool):
    """They are the hosts whose text is not searched for tags by default."""
    assert Account("main", "x", url).is_at(domain) is is_own


PARTS = [
    *(tag for form in FORMS[::4] for tag in form), "<think>", "</think>", "<think/>", "<", ">", "/", "th", "ink",
    "[", "]", "Hi", "a.", " ", "\n", "\n\n", "`", "```\n", '"', "(", "**", "> ", "中", "1.", ": ", "- ",
    "。", "    ",
]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS), max_size=14), st.lists(st.integers(0, 120), max_size=6), st.booleans())
def test_the_answer_is_the_same_at_every_split(parts: list[str], at: list[int], begins_inside: bool):
    check_splits("".join(parts), at, begins_inside)


@pytest.mark.soak
@pytest.mark.timeout(0)
@settings(max_examples=VERY_MANY)
@given(st.lists(st.sampled_from(PARTS), max_size=20), st.lists(st.integers(0, 160), max_size=8), st.booleans())
def test_the_answer_is_the_same_at_very_many_splits(parts: list[str], at: list[int], begins_inside: bool):
    check_splits("".join(parts), at, begins_inside)


def check_splits(reply: str, at: list[int], begins_inside: bool) -> None:
    whole = said([reply], begins_inside=begins_inside)[0]
    for deltas in (list(reply), split(reply, at)):
        assert said(deltas, begins_inside=begins_inside)[0] == whole
    behind = f"<think>Hm.</think>Hi, {reply.translate(NO_TAGS)}"
    assert said([behind])[0] == f"Hi, {reply.translate(NO_TAGS)}", "no text is lost behind a thought"


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
    for shown in ("Hm.\n</think>", "Hm.</think>"):
        assert said([shown, *" " * 50_000, "Hi"]) == ("Hi", True)
