"""Find links in templates of emails of which a variable decides where they lead, though its value is allowed."""

import re
from collections.abc import Iterator

from storage.configs.rules import Fault

_CHOSEN = r"\{\{\s*\.CustomVariables\.(?!TrackingPixelURL\s*\}\})[A-Za-z0-9_.]+\s*\}\}"
"""A variable that requests set."""
_IN_HOST = re.compile(
    rf"(?:[/\\]{{2}}|(?<![a-z0-9+.-])(?:https?|ftp|wss?|file):)[/\\]*[^\s/\\?#\"'<>]*{_CHOSEN}", re.IGNORECASE
)
"""Browsers read a host behind these schemes without slashes too."""
_AT_BEGINNING = re.compile(
    r"(?:(?<![\w-])(?:href|src|srcset|action|formaction|background|poster|cite)\s*=|\]\(|(?<!\w)url\()"
    rf"\s*[\"']?\s*{_CHOSEN}(?!\s*[\"'>)?#]| )",
    re.IGNORECASE,
)
"""The target of a link, in HTML, CSS or Markdown, that continues behind its variable."""
_SIDE_BY_SIDE = re.compile(rf"{_CHOSEN}\.?{_CHOSEN}")


def chosen_links(path: str, part: str) -> Iterator[Fault]:
    """Yield what is wrong with the variables in a part of a template. Each value is checked alone."""
    if _IN_HOST.search(part):
        yield Fault(
            path,
            "contains a variable in the host of a URL, or directly after it, so requests choose where it leads",
        )
    if _AT_BEGINNING.search(part):
        yield Fault(
            path,
            "contains a link that begins with a variable and continues, so requests may choose where it leads",
        )
    if _SIDE_BY_SIDE.search(part):
        yield Fault(path, "contains variables side by side, whose values may form a URL together")
