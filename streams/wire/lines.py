"""Recognizes texts that fit on one line."""

from unicodedata import category

_BREAKS = {"Cc", "Cs", "Zl", "Zp"}
_SHOWN = {"L", "N", "P", "S"}
"""The categories, by their first letter, of characters that are seen by themselves."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters of these categories that nobody sees: the fillers of Hangul, and the empty pattern of Braille."""


def is_line(text: str) -> bool:
    """Return whether a text has no line breaks, other control characters or surrogates: a header can contain it.

    Names may contain joiners, and blanks of every kind.
    """
    return _BREAKS.isdisjoint(map(category, text))


def has_visible(text: str) -> bool:
    """Return whether somebody who reads a text sees anything of it."""
    return any(category(char)[0] in _SHOWN and char not in _BLANK for char in text)
