"""Normalizes what people type or paste: codes, phone numbers and email addresses, before they are checked.

Keyboards, messengers and pages add characters that nobody sees or that look alike: marks of the writing direction,
full-width letters, digits of other scripts, hyphens that do not break, spaces of any width. NFKC maps characters to
plain ones where Unicode defines them as variants. Invisible characters (category Cf) are removed, and spaces and
dashes where they cannot belong. Nothing else is changed, so that a text with other characters is still refused.
"""

import re
from unicodedata import category, decimal, normalize

_OTHER_DASHES = frozenset("\u2212\u2043\u02d7\u30fc")
"""Characters that look like dashes, besides those of the category Pd."""
_HYPHENS = dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-")
"""The dashes by which a hyphen of an address may have been replaced."""
_AROUND_DOTS = re.compile(r"\s*\.\s*")


def typed_code(text: str) -> str:
    """Return a code. Its dashes are removed if it consists of digits, and are hyphens otherwise."""
    plain = "".join("-" if _is_dash(char) else char for char in _without_spaces(text))
    digits = plain.replace("-", "")
    return digits if digits.isascii() and digits.isdecimal() else plain


def typed_phone_number(text: str) -> str:
    """Return a phone number without spaces and dashes."""
    return "".join(char for char in _without_spaces(text) if not _is_dash(char))


def typed_address(text: str) -> str:
    """Return an email address.

    Blanks within its local part remain, because they may stand for something else, such as a `+`.
    """
    visible = "".join(char for char in _visible(text) if char.isascii() or not char.isspace())
    local, at, domain = normalize("NFKC", visible).translate(_HYPHENS).strip().rpartition("@")
    return f"{_AROUND_DOTS.sub('.', local).strip()}{at}{''.join(domain.split())}"


def trimmed(text: str) -> str:
    """Return a text without the blanks and invisible characters at its ends."""
    shown = [at for at, char in enumerate(text) if not (char.isspace() or category(char) == "Cf")]
    return text[shown[0] : shown[-1] + 1] if shown else ""


def plus_for_blank(text: str) -> str:
    """Return an email address in the query of a link, in which a `+` that is not encoded stands for a blank."""
    return text.strip().replace(" ", "+")


def _without_spaces(text: str) -> str:
    """Return the visible characters, with the ASCII digits of all decimal digits."""
    plain = normalize("NFKC", _visible(text))
    return "".join(_digit(char) for char in plain if not char.isspace())


def _visible(text: str) -> str:
    return "".join(char for char in text if category(char) != "Cf")


def _digit(char: str) -> str:
    value = decimal(char, None)
    return char if value is None else str(value)


def _is_dash(char: str) -> bool:
    return category(char) == "Pd" or char in _OTHER_DASHES
