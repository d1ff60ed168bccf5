"""All pages get their colours and sizes of text from `streams/wire/page_style.py`."""

import re
from collections.abc import Iterator

from app.http.html import Html
from app.pages.assets import STATIC
from streams.wire.page_style import BAR, PARTS, VARIABLES
from vendors.sandbox.payments.pages import page

_SHADES = re.compile(r"#000\b|#fff\b|rgb\((?:0 0 0|255 255 255) / \d+%\)")
"""Black and white, which lighten, darken and mask other colours."""
_COLOR = re.compile(r"#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch|lab)a?\(", re.IGNORECASE)
_RULE = re.compile(r"([\w-]+)\s*:\s*([^;{}]+)[;}]")
_OWN_VALUES = re.compile(r"^(?:var\(--size-\w+\)|inherit|0|[\d.]+em)(?: !important)?$")


def styles() -> Iterator[tuple[str, str]]:
    """Yield each style of the pages, without comments, and its name."""
    for path in sorted(STATIC.glob("*/*.css")):
        if path.parent.name != "vendor":
            yield str(path.relative_to(STATIC)), path.read_text()
    yield "parts.css", PARTS
    yield "bar.css", BAR
    small_pages = {"html.py": Html("Title", "", bar="<header></header>").response().text}
    small_pages["sandbox"] = page("Title", "", platform="Card").text
    for name, text in small_pages.items():
        assert text is not None
        assert VARIABLES in text
        yield name, text.partition("<style>")[2].partition("</style>")[0].replace(VARIABLES, "")


def rules() -> Iterator[tuple[str, str, str]]:
    for name, text in styles():
        for each in _RULE.finditer(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
            yield name, each[1], each[2].strip()


def test_colors_are_those_of_all_pages_or_have_a_name_of_their_own():
    literal = [
        (name, key, value)
        for name, key, value in rules()
        if not key.startswith("--") and _COLOR.search(_SHADES.sub("", value))
    ]
    assert literal == []


def test_texts_have_the_sizes_of_all_pages():
    others = [(name, value) for name, key, value in rules() if key == "font-size" and not _OWN_VALUES.match(value)]
    assert others == []
    assert sum(key == "font-size" for _, key, _ in rules()) > 100
