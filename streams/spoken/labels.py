"""Labels of items that are no plain numbers: `1.2.`, `II.`, `b)`, `나.`, `#2.`, `1a.`. Does no I/O.

Markdown has no such lists, but models write them. A label is part of the text of its item.
"""

import re
from typing import NamedTuple

_OPENING = r"[*_]{0,3}[(（]?"  # noqa: RUF001
_LEVELS = r"\d{1,3}(?:\.\d{1,3}){1,4}"
_COMBINED = r"[A-Z]\.?\d{1,3}(?:\.\d{1,3}){0,3}|\d{1,3}-\d{1,3}"
_NAME = (
    rf"{_LEVELS}|{_COMBINED}|(?<=[(（])\d{{1,3}}|#\d{{1,3}}|\d{{1,3}}[a-z]"  # noqa: RUF001
    r"|[ivxlc]{2,7}|[IVXLC]{2,7}|[一二三四五六七八九十百]{2,4}|[^\W\d_]"
)
_MARK = r"(?:\\?[.)]|[、．）])\)?[*_]{0,3}"  # noqa: RUF001
_LABEL = re.compile(
    rf"{_OPENING}({_NAME})({_MARK})(?:[ \t]+(?=\S)|(?=[^\W\d_]))|{_OPENING}({_LEVELS})[ \t]+(?=[^\W\d_])"
)
UNDECIDED = (
    rf"{_OPENING}(?:#|#?\d{{1,3}}(?:[.-]\d{{1,3}}){{0,4}}[.a-z-]?"
    rf"|[A-Z]\.?\d{{1,3}}(?:\.\d{{1,3}}){{0,3}}\.?|[ivxlc]{{1,7}}|[IVXLC]{{1,7}}"
    rf"|[一二三四五六七八九十百]{{1,4}}|[^\W\d_])?(?:\\|{_MARK})?[ \t]*"
)
"""Beginnings of lines that may have a label."""
NAMES = rf"{_LEVELS}|{_COMBINED}|\d{{1,3}}[a-z]|[IVXLC]{{2,7}}"
"""Labels that end no sentence, although they have more than one character."""
_FIRST_NUMBER = re.compile(r"(?<!\d)1$")
_FIRST = frozenset(("1a", *"aAiI가ㄱаАあアいイกकक甲一ααΑאأا"))  # noqa: RUF001
_NUMBER = re.compile(r"\d+")
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_SCRIPT = 0x5200
"""More than the distance between two letters of one script, of which the ideographs have the most."""


class Label(NamedTuple):
    name: str
    mark: str
    """What separates it from the text, such as a point."""
    length: int
    """The number of characters before the text of the item."""

    @property
    def is_first(self) -> bool:
        """Whether it is the first one of a list."""
        return self.name in _FIRST or _FIRST_NUMBER.search(self.name) is not None

    @property
    def may_be_prose(self) -> bool:
        """Whether it may belong to a sentence: `A. Lincoln`, `1.1 million`."""
        return not self.mark or (self.name.isupper() and "." in self.mark)

    def follows(self, before: str) -> bool:
        """Return whether it is the next label of a list after that with the name `before`."""
        if not before or before == self.name or before.isupper() != self.name.isupper():
            return False
        if not (self.name.isascii() or before.isascii()):  # Most scripts have an order of their own for lists.
            return abs(ord(self.name[0]) - ord(before[0])) < _SCRIPT
        return self.name in _next_names(before) or _roman(self.name) == _roman(before) + 1 > 1


def label_of(body: str) -> Label | None:
    """Return the label at the beginning of a line, without its indentation and quotes."""
    found = _LABEL.match(body)
    if found is None:
        return None
    name, mark, text = found[1] or found[3], found[2] or "", body[found.end()]
    is_apart = body[found.end() - 1] in " \t"
    if is_apart or not (name + text).isascii() or ("." in name and text.isupper()):
        return Label(name, mark, found.end())
    return None  # Such as `e.g.` and `1.2.x`.


def _next_names(before: str) -> set[str]:
    """Return the names that may follow one of Latin letters and digits: `1.2`, `2.1` and `1.1.1` follow `1.1`."""
    names = {f"{before}.1"}
    if before[-1].isalpha():
        names.add(before[:-1] + chr(ord(before[-1]) + 1))
    for number in _NUMBER.finditer(before):
        higher = f"{before[: number.start()]}{int(number[0]) + 1}"
        names |= {higher, f"{higher}.1", f"{higher}.1.1", f"{higher}a"}
    return names


def _roman(name: str) -> int:
    """Return the value of a Roman numeral, or 0."""
    letters = name.lower()
    if letters.strip("ivxlc"):
        return 0
    values = [_ROMAN[letter] for letter in letters]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))
