"""Characters that are meant literally, although Markdown could take them for markup. Does no I/O.

While markup is removed, characters of the private use area stand for them.
"""

import re

_FIRST = 0xE000
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_CHARACTERS = {_FIRST + code: chr(code) for code in range(0x21, 0x7F)}


def literal(text: str) -> str:
    """Return `text` with all ASCII punctuation protected."""
    return _PUNCTUATION.sub(lambda mark: chr(_FIRST + ord(mark[0])), text)


def restored(text: str) -> str:
    """Return a text in which the protected characters are themselves again."""
    return text.translate(_CHARACTERS)
