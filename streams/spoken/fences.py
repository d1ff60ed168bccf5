"""Fences: the lines that begin and end code. Does no I/O.

Code in a block quote or in the item of a list ends with it (CommonMark 0.31, 4.5). Models also write fences
where Markdown has none: behind text, and at the end of the last line of the code.
"""

import re
from typing import NamedTuple

SPACES = " \t"
QUOTED = SPACES + ">"
_TAB = 4
_FENCE = re.compile(r"((?:[-*+•]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})")
"""The beginning of code, which may be the content of an item."""
_FENCE_AND_TEXT = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_INFO = re.compile(
    r"[\w+#./:-]{0,40}(?<![.:!?])(?:[ \t]*\{.*|[ \t]+[\w-]+=.*|[ \t]+[\w/-]+\.[A-Za-z]\w{0,9})?",
    re.ASCII,
)
"""What may follow the fence of code within code: a language, and attributes or the name of a file."""
_FENCE_BEHIND_TEXT = re.compile(r"(?<=[\s:])(`{3,})[\w+#.-]{0,32}[ \t\r]*$")
_FENCE_BEHIND_CODE = re.compile(r"(?<=[^\s:`~'\"(])(`{3,}|~{3,})[ \t\r\n.,;:!?]*$")
_RAW = re.compile(r"<(script|style)(?:[ \t][^<>]{0,200})?>\s*", re.IGNORECASE)
"""The line that begins a script or style sheet of HTML, which ends with the closing tag."""
RAW_UNDECIDED = r"<(?:[sS][A-Za-z]{0,5}(?:[ \t][^<>]{0,200})?>?)?\s*"
_MARKS = ".,;:!?"
CLOSING = QUOTED + "`~" + _MARKS
"""Characters of lines that may end code."""
_ITEM = re.compile(r"([ \t]*)((?:[-*+•]|\d{1,9}[.)])[ \t]+)(?=\S)")


class Fence(NamedTuple):
    """The beginning of code, and what it is in."""

    mark: str
    quotes: int = 0
    """The number of block quotes."""
    column: int = 0
    """Where the content of the list item begins. 0: outside lists."""
    has_lines: bool = False


def width(spaces: str) -> int:
    return sum(_TAB if space == "\t" else 1 for space in spaces)


def fence_before(body: str) -> re.Match[str] | None:
    """Return the fence with which a line begins, without its indentation and quotes."""
    found = _FENCE.match(body)
    return found if found and not (found[2][0] == "`" and "`" in body[found.end() :]) else None


def begins_raw(body: str) -> re.Match[str] | None:
    return _RAW.fullmatch(body)


def fence_of(line: str, column: int) -> Fence | None:
    """Return the fence with which a line begins code, at its start or behind its text.

    `column`: where the content of the current list item begins.
    """
    body = line.lstrip(QUOTED)
    prefix = line[: len(line) - len(body)]
    if found := fence_before(body):
        indent = width(prefix.partition(">")[0])
        in_item = indent + len(found[1]) if found[1] else column if indent >= column else 0
        return Fence(found[2], prefix.count(">"), 0 if ">" in prefix else in_item)
    if raw := begins_raw(body):
        return Fence(f"</{raw[1].lower()}>")
    behind = fence_behind_text(line)
    return Fence(behind[1], prefix.count(">"), column) if behind else None


def fence_behind_text(text: str, before: int = 0) -> re.Match[str] | None:
    """Return the fence with which a line of prose ends.

    `before` is the number of backtick fences in the paragraph before `text`: those in pairs are inline code.
    """
    return _FENCE_BEHIND_TEXT.search(text) if (before + text.count("```")) % 2 else None


def fence_within(line: str, fence: Fence) -> Fence | None:
    """Return the fence that is open in the next line. `None`: the line is not in the quote or item of the code.

    If the first line of the code is outside, or the fence that ends it, a model has not indented it.
    """
    prefix = line[: len(line) - len(line.lstrip(QUOTED))]
    is_blank = len(prefix) == len(line.rstrip("\r\n"))
    if fence.quotes:
        is_outside = prefix.count(">") < fence.quotes
    else:
        is_outside = not is_blank and width(prefix.partition(">")[0]) < fence.column
    if not is_outside:
        return fence if is_blank else fence._replace(has_lines=True)
    is_sloppy = not is_blank and (not fence.has_lines or _end_of_closing_fence(line, fence.mark) >= 0)
    return Fence(fence.mark, has_lines=True) if is_sloppy else None


def end_of_code(line: str, mark: str) -> int:
    """Return where the text behind the fence that ends the code begins in a line, or -1 if the code continues."""
    if mark[0] == "<":
        at = line.lower().find(mark)
        return -1 if at < 0 else at + len(mark)
    if (end := _end_of_closing_fence(line, mark)) >= 0:
        return end
    behind = _FENCE_BEHIND_CODE.search(line) if mark in line else None
    is_end = behind and behind[1].startswith(mark) and line.count(mark) % 2
    return len(line) if is_end else -1


def _end_of_closing_fence(line: str, mark: str) -> int:
    """Do the same as `end_of_code` for a line that begins with a fence.

    Markdown has no text behind it, but models write it. What may be the language of code within the code is none.
    """
    body = line.strip(QUOTED + "\r\n").rstrip(_MARKS)
    if len(body) >= len(mark) and not body.strip(mark[0]):
        return len(line)
    found = _FENCE_AND_TEXT.match(line)
    if found is None or not found[1].startswith(mark):
        return -1
    text = line[found.end() :]
    return -1 if mark in text or _INFO.fullmatch(text.strip()) else found.end()


def fence_after(line: str, fence: Fence | None, column: int) -> Fence | None:
    """Return the fence that is open behind a complete line, if `fence` is open before it."""
    within = fence_within(line, fence) if fence else None
    if within is None:
        return fence_of(line, column)
    end = end_of_code(line, within.mark)
    return within if end < 0 else fence_of(line[end:], column)


def column_after(line: str, column: int) -> int:
    """Return where the content of the current list item begins behind a line, if it was `column` before."""
    if item := _ITEM.match(line):
        return width(item[1]) + len(item[2])
    body = line.lstrip(SPACES)
    return 0 if body.strip() and width(line[: len(line) - len(body)]) < column else column
