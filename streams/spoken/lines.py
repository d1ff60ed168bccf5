"""The kinds of lines in Markdown, recognized as soon as their beginning decides. Does no I/O."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from streams.spoken.inline import PICTURES

_SPACES = " \t"
_KEYCAP = r"(?:(\d)\ufe0f?\u20e3|\U0001f51f)\ufe0f?"
"""Emoji that number items: `1️⃣` to `9️⃣`, and `🔟`."""
_UNDECIDED = re.compile(
    r"`{1,2}|~{1,2}|#{1,6}[ \t]*|[-*_=+:|• \t]+|\d{1,9}(?:[.)][ \t]*)?"
    r"|\[[^\]]{0,100}(?:\](?::[ \t]*(?:\S+[ \t]*)?)?)?"
    rf"|\d\ufe0f?|{_KEYCAP}[ \t]*|{PICTURES}[ \t]*|(?:[-*+•]|\d{{1,9}}[.)])[ \t]+(?:`{{1,2}}|~{{1,2}})"
)
"""Beginnings of lines whose kind depends on what follows."""
_FENCE = re.compile(r"(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})")
"""The beginning of code, which may be the content of an item."""
_FENCE_AND_TEXT = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]+(?=\S+[ \t]+\S)([^`\n]+)")
_FENCE_AT_END = re.compile(r"(?<=[\s:])(`{3,})[\w+#.-]{0,32}[ \t\r]*$")
_HEADING = re.compile(r"#{1,6}(?:[ \t]+|$)")
_RULE = re.compile(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")
_TABLE_RULE = re.compile(r"(?=.*-)(?=.*\|)[-:| \t]+")
_BULLET = re.compile(rf"(?:[-*+•]|{PICTURES})(?:[ \t]+|$)")
_NUMBER = re.compile(r"(\d{1,9})[.)](?:[ \t]+|$)")
_EMOJI_NUMBER = re.compile(rf"{_KEYCAP}(?:[ \t]+|$)")
_REFERENCE = re.compile(r"\[\^[^\]]{1,100}\]:|\[[^\]]{1,100}\]:[ \t]*(?=\S*(?:[/#@:]|\.\w))\S+[ \t\r]*(?:$|[\"'(])")
"""A footnote, or the address of a link. `[Anna]: Hello` is somebody who speaks."""
_CODE_INDENT = 4
_TAB = 4

Kind = Literal["blank", "prose", "heading", "item", "row", "table_rule", "rule", "fence", "code"]
"""`rule`: a line without text, such as a thematic break or the address of a link."""


class Line(NamedTuple):
    """The kind of a line. Its content begins after `prefix` characters."""

    kind: Kind
    prefix: int = 0
    number: str = ""
    """Of an item in an ordered list."""
    column: int = 0
    """Where the content of an item begins, or that of another line."""


@dataclass(slots=True)
class Surroundings:
    """What the kind of a line depends on."""

    in_paragraph: bool = False
    in_item: bool = False
    column: int = 0
    """Where the content of the current list item begins. 0: outside lists."""
    after_blank: bool = True
    in_code: bool = False
    in_table: bool = False


def kind_of(line: str, around: Surroundings, *, is_complete: bool) -> Line | None:
    """Return the kind of a line, of which `line` is the beginning or all. `None`: more of it decides."""
    unquoted = line.lstrip(_SPACES)
    indent = _width(line[: len(line) - len(unquoted)])
    body = unquoted.lstrip(_SPACES + ">") if unquoted.startswith(">") else unquoted
    if not body:
        return Line("blank") if is_complete else None
    if _is_code(around, indent):
        return Line("code")
    prefix = len(line) - len(body)
    if not is_complete and (around.in_table or body.startswith("|") or _UNDECIDED.fullmatch(body)):
        return None
    if _fence_before(body):
        return Line("fence") if is_complete else None
    kind = _kind_without_prose(body, around)
    if kind == "row":
        return Line(kind, prefix)
    return Line(kind) if kind is not None else _prose(body, around, prefix=prefix, indent=indent)


def _is_code(around: Surroundings, indent: int) -> bool:
    is_loose = not (around.in_paragraph or around.in_item)
    return is_loose and indent >= around.column + _CODE_INDENT and (around.after_blank or around.in_code)


def _kind_without_prose(body: str, around: Surroundings) -> Kind | None:
    """Return the kind of a line that has no prose, or is a row of a table."""
    is_underline = around.in_paragraph and _UNDERLINE.fullmatch(body)
    if _RULE.fullmatch(body.rstrip()) or is_underline or _REFERENCE.match(body):
        return "rule"
    if _TABLE_RULE.fullmatch(body):
        return "table_rule"
    return "row" if body.startswith("|") or (around.in_table and "|" in body) else None


def _prose(body: str, around: Surroundings, *, prefix: int, indent: int) -> Line:
    if heading := _HEADING.match(body):
        return Line("heading", prefix + heading.end(), "", indent)
    if number := _EMOJI_NUMBER.match(body):
        return Line("item", prefix + number.end(), number[1] or "10", indent + number.end())
    if bullet := _BULLET.match(body):
        return Line("item", prefix + bullet.end(), "", indent + bullet.end())
    number = _NUMBER.match(body)
    if number and _begins_item(number, around, indent):
        return Line("item", prefix + number.end(), number[1], indent + number.end())
    return Line("prose", prefix, "", indent)


def _begins_item(number: re.Match[str], around: Surroundings, indent: int) -> bool:
    """A number without text is an item only in a list: `42.` may be the answer."""
    if number.end() == len(number.string.rstrip("\r")) and not (around.in_item or around.column):
        return False
    is_in_paragraph = around.in_paragraph and indent >= around.column
    return number[1] == "1" or not is_in_paragraph


def closes(line: str, fence: str) -> bool:
    """Return whether a line ends the code that `fence` has begun."""
    body = line.strip(" \t>\r\n")
    return len(body) >= len(fence) and not body.strip(fence[0])


def text_behind_fence(line: str, fence: str) -> str:
    """Return the text in the line behind a fence that ends the code, which models write although Markdown has none.

    One word would be the language of code within the code.
    """
    found = _FENCE_AND_TEXT.match(line)
    return found[2] if found and found[1].startswith(fence) else ""


def fence_behind_text(text: str) -> re.Match[str] | None:
    """Return the fence with which a line of prose ends: models begin code there, although Markdown does not."""
    return _FENCE_AT_END.search(text) if text.count("```") % 2 else None


def fence_of(line: str) -> str:
    """Return the fence with which a line begins code, at its start or behind its text, or an empty string."""
    if fence := _fence_before(line.lstrip(_SPACES + ">")):
        return fence
    found = fence_behind_text(line)
    return found[1] if found else ""


def _fence_before(body: str) -> str:
    found = _FENCE.match(body)
    return found[1] if found and not (found[1][0] == "`" and "`" in body[found.end() :]) else ""


def _width(spaces: str) -> int:
    return sum(_TAB if space == "\t" else 1 for space in spaces)
