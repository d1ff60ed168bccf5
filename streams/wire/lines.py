"""Recognizes texts that fit on one line."""

from unicodedata import category

_BREAKS = {"Cc", "Cs", "Zl", "Zp"}


def is_line(text: str) -> bool:
    """Return whether a text has no line breaks, other control characters or surrogates: a header can contain it.

    Names may contain joiners, and blanks of every kind.
    """
    return _BREAKS.isdisjoint(map(category, text))
