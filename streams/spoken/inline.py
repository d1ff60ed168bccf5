"""Removes the markup within a sentence, and what nobody would read aloud. Does no I/O."""

import html
import re

_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
_REFERENCE = re.compile(r"!?\[([^\[\]]+)\]\[[^\[\]]*\]")
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]")
_REST_OF_LINK = re.compile(r"\]\([^)\s]*\)?")
"""The end of a link whose text was split into two sentences."""
_URL = re.compile(
    r"<?\b(?:https?://|www\.)(?:www\.)?([\w.-]*\w)(?:[^\s<>()\[\]]|\([^\s()]*\))*?(?=[.,;:!?*_`'\"]*(?:[\s<>()\[\]]|$))>?"
)
_ADDRESS = re.compile(r"<(?:mailto:)?([^<>@\s]+@[^<>\s]+)>")
_BREAK = re.compile(r"<br\s*/?>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?(?:-->|$)|^--.*?-->|<!$", re.DOTALL)
"""Tags, and comments, which may be split into two sentences at their exclamation mark."""
_STRUCK = re.compile(r"~~(?=\S).*?\S~~")
_TASK = re.compile(r"^\s*\[[ xX]\]\s+")
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?![A-Za-z0-9])")
"""Emphasis marks at the edge of a word. Marks within a word stay: `2*3`, `first_name`."""
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_ESCAPED = {0xE000 + code: chr(code) for code in range(0x21, 0x7F)}
"""Characters of the private use area stand for escaped ones while markup is removed."""
PICTURES = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b50-\u2b55\u231a-\u23ff\ufe0f\u200d\u20e3\U000e0020-\U000e007f]+"
"""Emoji and dingbats, which voices read by their names."""
_PICTURES = re.compile(PICTURES)
_ARROW = re.compile(r"\s*[\u2190-\u21ff\u27f5-\u27ff]\s*")
_CELL = re.compile(r"\s\|\s")
_QUOTE = re.compile(r"(^|\n)[ \t]*(?:>[ \t]*)+")
_WHITE = re.compile(r"\s+")
_SOUND = re.compile(r"[^\W_]")


def spoken_inline(text: str) -> str:
    """Return what is spoken of a sentence. It is empty if nothing is, and begins and ends without white space."""
    text = _ESCAPE.sub(lambda escape: chr(0xE000 + ord(escape[1])), _QUOTE.sub(r"\1", text))
    text = _without_links(_TASK.sub("", text))
    text = _TAG.sub("", _BREAK.sub(" ", text))
    text = _EMPHASIS.sub("", _STRUCK.sub("", text))
    text = _PICTURES.sub("", html.unescape(text))
    text = _CELL.sub(", ", _ARROW.sub(", ", text))
    text = _WHITE.sub(" ", text).translate(_ESCAPED).strip()
    return text if _SOUND.search(text) else ""


def _without_links(text: str) -> str:
    """Return a text with the names of its links, and only the hosts of plain addresses."""
    for _ in range(2):  # A picture may be in a link.
        text = _LINK.sub(r"\1", text)
    text = _REFERENCE.sub(r"\1", _FOOTNOTE.sub("", text))
    text = _REST_OF_LINK.sub("", text)
    return _ADDRESS.sub(r"\1", _URL.sub(r"\1", text))
