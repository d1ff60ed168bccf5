"""The time per character does not grow with the length of an answer, whatever it is and however it is cut."""

import time

import pytest

from streams.spoken.sentences import SpokenSentences

FIRST = 3000
FACTOR = 8
RATIO_LIMIT = 3 * FACTOR
"""Linear time has a ratio of 8, quadratic time one of 64."""
SMALLEST_S = 0.002
"""Shorter times are too inexact to be compared."""
UNITS = [" ", "\t", "> ", "*", "_", "-", "😀", "`", "``a` ", "a\n"]
MORE_UNITS = [
    *(
        "~",
        "#",
        "|",
        "=",
        "+",
        ":",
        "•",
        "1",
        "a",
        ".",
        "a. ",
        "1. ",
        "- ",
        "* ",
        "[",
        "[a]: ",
        "[a](",
        "![",
        "<",
        "<a",
    ),
    *(
        "<!--",
        "`a ",
        "$a ",
        "\\(",
        "| a ",
        "a | ",
        "```",
        "```\n",
        "a ```",
        "```a",
        "~~~a",
        "\xa0",
        "\u3000",
        "你",
        "你。",
        "①",
    ),
    *(
        "1\ufe0f\u20e3",
        "★",
        "→",
        "**a**\n",
        "**1.** ",
        "1.",
        "1\\. ",
        "1、",
        "1.1.",
        "II. ",
        "a)\n",
        "2**3",
        "a.~~ ",
        "<script>",
        "<script>\n",
        "a__",
        "```Then. ",
        "```a \n",
        "<b>",
        "</b>",
        "<a b=c>",
        "http://",
        "&amp;",
        "\r",
    ),
]


def cpu_s(text: str, step: int) -> float:
    sentences = SpokenSentences("en")
    began = time.process_time()
    for at in range(0, len(text), step):
        sentences.feed(text[at : at + step])
    sentences.finish()
    return time.process_time() - began


def check(unit: str, begin: str, *, is_whole: bool) -> None:
    short, long = (begin + unit * (length // len(unit)) for length in (FIRST, FACTOR * FIRST))
    ratios = []
    for _ in range(3):  # Another process may slow one of them down.
        short_s = max(SMALLEST_S, cpu_s(short, len(short) if is_whole else 1))
        ratios.append(cpu_s(long, len(long) if is_whole else 1) / short_s)
        if ratios[-1] < RATIO_LIMIT:
            return
    raise AssertionError(f"The time grows {min(ratios):.0f} times with {FACTOR} times the text.")


@pytest.mark.parametrize("unit", UNITS)
def test_time_is_linear_in_deltas_of_one_character(unit: str):
    check(unit, "", is_whole=False)


@pytest.mark.soak
@pytest.mark.parametrize("is_whole", [False, True], ids=["characters", "whole"])
@pytest.mark.parametrize("begin", ["", "a ", "    ", "> ", "```\n", "a|b\n-|-\n"])
@pytest.mark.parametrize("unit", UNITS + MORE_UNITS)
def test_time_is_linear_after_any_beginning(unit: str, begin: str, is_whole: bool):
    check(unit, begin, is_whole=is_whole)


def test_a_large_delta_is_not_slow():
    text = "``a` " * 10_000

    assert min(cpu_s(text, len(text)) for _ in range(3)) < 0.3
