"""The kinds of lines in Markdown, recognized as soon as their beginning decides. Does no I/O."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, NamedTuple

from streams.spoken.fences import QUOTED, RAW_UNDECIDED, SPACES, begins_raw, fence_before, width
from streams.spoken.inline import PICTURES
from streams.spoken.labels import UNDECIDED, label_of

_KEYCAP = r"(?:(\d)\ufe0f?\u20e3|\U0001f51f)\ufe0f?"
"""Emoji that number items: `1️⃣` to `9️⃣`, and `🔟`."""
_POINT = r"(?:\\?[.)]|\.\)|[．、）])"  # noqa: RUF001
_CIRCLED = "\u2460-\u2473"
"""`①` to `⑳`."""
_OPENING = r"[*_\[(\"'“「『《（]"  # noqa: RUF001
_UNDECIDED = re.compile(
    r"`{1,2}|~{1,2}|#{1,6}[ \t]*|[-*_=+:|• \t]+|\[[^\]]{0,100}(?:\](?::[ \t]*(?:\S+[ \t]*)?)?)?"
    rf"|[*_]{{0,3}}\d{{1,9}}(?:\\|{_POINT}[*_]{{0,3}}[ \t]*{_OPENING}{{0,4}})?|\d{{1,3}}\.[a-z]|[{_CIRCLED}][ \t]*"
    rf"|\d\ufe0f?|{_KEYCAP}[ \t]*|{PICTURES}[ \t]*|(?:[-*+•]|\d{{1,9}}[.)])[ \t]+(?:`{{1,2}}|~{{1,2}})"
    rf"|{UNDECIDED}|{RAW_UNDECIDED}"
)
"""Beginnings of lines whose kind depends on what follows."""
_HEADING = re.compile(r"#{1,6}(?:[ \t]+|$)")
_RULE = re.compile(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")
_TABLE_RULE = re.compile(r"(?=.*-)(?=.*\|)[-:| \t]+")
_BULLET = re.compile(rf"(?:[-*+•]|{PICTURES})(?:[ \t]+|$)")
_NUMBER = re.compile(r"(\d{1,9})[.)](?:[ \t]+|$)")
_MAY_BE_NUMBERED = re.compile(rf"[*_]{{0,3}}[\d{_CIRCLED}]")
_LETTER = rf"{_OPENING}{{0,4}}[^\W\d_]"
_LOOSE_NUMBER = re.compile(
    rf"([*_]{{1,3}})(\d{{1,3}}){_POINT}\1(?:[ \t]+(?=\S)|(?={_LETTER}))"
    r"|(\d{1,3})(?:[．、）]|\.\)|\\[.)])[ \t]*(?=[^\s\d])"  # noqa: RUF001
    rf"|(\d{{1,3}})[.)](?={_LETTER})|([{_CIRCLED}])[ \t]*(?=\S)"
)
"""The number of an item as models write it, although Markdown has no list there: `1.苹果`, `**1.** One`."""
_NUMBERED_TITLE = re.compile(rf"[*_]{{1,3}}(\d{{1,3}}){_POINT}[ \t]*(?={_LETTER})")
"""Emphasis that begins with the number of an item: `**1. Choose**`."""
_VERSION = re.compile(r"\d+\.[a-z](?![a-z])")
"""The beginning of a line with `3.x`."""
_EMOJI_NUMBER = re.compile(rf"{_KEYCAP}(?:[ \t]+|$)")
_REFERENCE = re.compile(r"\[\^[^\]]{1,100}\]:|\[[^\]]{1,100}\]:[ \t]*(?=\S*(?:[/#@:]|\.\w))\S+[ \t\r]*(?:$|[\"'(])")
"""A footnote, or the address of a link. `[Anna]: Hello` is somebody who speaks."""
_CODE_INDENT = 4

Kind = Literal["blank", "prose", "heading", "item", "title", "row", "table_rule", "rule", "fence", "code"]
"""`rule`: a line without text, such as a thematic break or the address of a link.

`title`: an item whose number or label is part of its text. The emphasis may include it.
"""


class Line(NamedTuple):
    """The kind of a line. Its content begins after `prefix` characters."""

    kind: Kind
    prefix: int = 0
    number: str = ""
    """Of an item in an ordered list, or at the beginning of a line of prose."""
    column: int = 0
    """Where the content of an item begins, or that of another line."""
    label: str = ""
    """That of an item, or at the beginning of a line of prose."""


@dataclass(slots=True)
class Surroundings:
    """What the kind of a line depends on."""

    in_paragraph: bool = False
    in_item: bool = False
    column: int = 0
    """Where the content of the current list item begins. 0: outside lists."""
    number: int = 0
    """The last number of an item, or at the beginning of a line."""
    label: str = ""
    """The last label of an item, or at the beginning of a line."""
    after_colon: bool = False
    """Whether the line before ends with a colon."""
    after_blank: bool = True
    in_code: bool = False
    in_table: bool = False


def kind_of(line: str, around: Surroundings, *, is_complete: bool) -> Line | None:
    """Return the kind of a line, of which `line` is the beginning or all. `None`: more of it decides."""
    unquoted = line.lstrip(SPACES)
    indent = width(line[: len(line) - len(unquoted)])
    body = unquoted.lstrip(QUOTED) if unquoted.startswith(">") else unquoted
    if not body:
        return Line("blank") if is_complete else None
    if _is_code(around, indent):
        return Line("code")
    prefix = len(line) - len(body)
    if not is_complete and (around.in_table or body.startswith("|") or _UNDECIDED.fullmatch(body)):
        return None
    if fence_before(body) or begins_raw(body):
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
    numbered = _numbered(body, around, prefix, indent) if _MAY_BE_NUMBERED.match(body) else None
    return numbered or _labelled(body, around, prefix, indent) or Line("prose", prefix, "", indent)


def _numbered(body: str, around: Surroundings, prefix: int, indent: int) -> Line | None:
    """Return the kind of a line that begins with a number."""
    if number := _NUMBER.match(body):
        if _begins_item(number, around, indent):
            return Line("item", prefix + number.end(), number[1], indent + number.end())
        return Line("prose", prefix, number[1], indent)
    loose = _LOOSE_NUMBER.match(body) or _NUMBERED_TITLE.match(body)
    if loose is None or _VERSION.match(body):
        return None
    digits = unicodedata.normalize("NFKC", loose[loose.lastindex or 0])
    if not (_is_next(int(digits), around) or _may_begin(around, indent)):
        return Line("prose", prefix, digits, indent)
    is_title = loose.re is _NUMBERED_TITLE
    return Line("title" if is_title else "item", prefix + (0 if is_title else loose.end()), digits, indent)


def _begins_item(number: re.Match[str], around: Surroundings, indent: int) -> bool:
    """A number without text is an item only in a list: `42.` may be the answer."""
    if number.end() == len(number.string.rstrip("\r")) and not (around.in_item or around.column):
        return False
    return _is_next(int(number[1]), around) or _may_begin(around, indent)


def _is_next(number: int, around: Surroundings) -> bool:
    return number == 1 or (around.number > 0 and number == around.number + 1)


def _may_begin(around: Surroundings, indent: int) -> bool:
    """Whether an item with any number may begin. In a sentence, a line may begin with a year or a date."""
    return around.after_colon or not (around.in_paragraph and indent >= around.column)


def _labelled(body: str, around: Surroundings, prefix: int, indent: int) -> Line | None:
    """Return the kind of a line that begins with a label.

    If it may be an initial or the end of a sentence, it begins an item only in a list, or behind another label.
    """
    label = label_of(body)
    if label is None:
        return None
    is_first = label.is_first and (not label.may_be_prose or (around.in_item and label.mark))
    if is_first or around.after_colon or label.follows(around.label):
        return Line("title", prefix, "", indent + label.length, label.name)
    return Line("prose", prefix, "", indent, label.name)
