"""Keeps what only looks like emphasis within words: the powers of programs, and names with two underscores.

Markdown has emphasis within words (CommonMark 0.31, 6.2), so `2**3` could be half of it. Does no I/O.
"""

import re

from streams.spoken.literals import literal

_POWER = re.compile(
    # Bold text directly before a letter or digit, unless the marks after it end the bold text: `**2**3 is 8**`.
    r"(?P<bold>(?<![A-Za-z0-9*])\*\*(?=[^\s*])[^*]*[^\s*]\*\*(?=[A-Za-z0-9])(?![^*]*[^\s*]\*\*(?![A-Za-z0-9*])))"
    r"|(?<=[A-Za-z0-9_)\]])\*\*(?=[-+(]{0,2}\.?\d)"
    r"|(?:(?<=[\d)\]])|(?<=\b[A-Za-z]))\*\*(?=[-+(]{0,2}[A-Za-z](?![A-Za-z]|\*\*(?!\d)))"
    r"|(?<=\d)\*\*(?=[A-Za-z_])(?![^*]*[^\s*]\*\*)"
    r"|(?:(?<=[\d)\]] )|(?<=\b[A-Za-z] ))\*\*(?= [-+(]{0,2}(?:\d|[A-Za-z]\b))"
    r"|(?<=[A-Za-z0-9])_{2,}(?=[A-Za-z0-9])"
)


def with_powers(text: str) -> str:
    """Protect the signs of powers, and underscores within names."""
    return _POWER.sub(lambda sign: sign[0] if sign["bold"] else literal(sign[0]), text)
