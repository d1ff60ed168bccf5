"""Reads the fields of providers' responses, which may have any type and content."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from unicodedata import category

from streams.wire.damaged import BrokenObject
from vendors.errors import Garbled
from vendors.signin.protocols import ProofRefused, ProviderUnavailable

_MAX_ID = 256
_MAX_TEXT = 256
_MAX_TOKEN = 16 * 1024
_MAX_URL = 2048
_MAX_TIME_S = 2**53
"""JavaScript represents integers below this exactly."""
_MAX_LIFETIME_S = 100 * 366 * 86_400
_NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Categories of characters: controls, halves of surrogate pairs, ends of lines and of paragraphs."""
_MALE = frozenset({"1", "m", "male", "男"})
_FEMALE = frozenset({"2", "f", "female", "女"})


def identifier(platform: str, value: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is present, as text.

    Raise `ProofRefused` if the id of this person cannot be read, and `Garbled` if the provider sent none, or one of
    another type. Whole numbers are exact up to 2^64; larger ones are decoded as floats, which are not ids.
    """
    found = next((value[name] for name in names if value.get(name) is not None and value[name] != ""), None)
    if not isinstance(found, str | int) or isinstance(found, bool):
        if found is None and isinstance(value, BrokenObject):
            raise _unreadable(platform, names[0])
        raise Garbled(platform, f"sent a response without a valid {names[0]}")
    if len(text := str(found)) > _MAX_ID or not text.isprintable():
        raise _unreadable(platform, names[0])
    return text


def _unreadable(platform: str, name: str) -> ProofRefused:
    return ProofRefused(f"{platform} sent a {name} that cannot be read")


def token(platform: str, value: Mapping[str, Any], name: str) -> str:
    """Return a token. Raise `Garbled` if it is missing."""
    if not (found := optional_token(platform, value, name)):
        raise Garbled(platform, f"sent a response without a valid {name}")
    return found


def optional_token(platform: str, value: Mapping[str, Any], name: str) -> str:
    """Return a token, or an empty string if there is none or it cannot be sent in a header.

    Raise `ProviderUnavailable` if it is too long. This is no failure of the provider, because it depends on the
    user.
    """
    found = value.get(name)
    if not (isinstance(found, str) and found.isascii() and found.isprintable()):
        return ""
    if len(found) > _MAX_TOKEN:
        raise ProviderUnavailable(f"{platform} sent a {name} of more than {_MAX_TOKEN} characters")
    return found.strip()


def text(value: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is a non-empty text, as one line with at most 256 characters.

    Invisible characters remain, because emoji and several scripts need them.
    """
    for name in names:
        if isinstance(found := value.get(name), str):
            shown = "".join(" " if category(char) in _NO_TEXT else char for char in found)
            if line := " ".join(filter(None, shown.split(" "))):
                return line[:_MAX_TEXT]
    return ""


def web_url(value: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is an HTTP URL. Pages may show it as a picture or a link."""
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found.lower().startswith(("https://", "http://")):
            url = found.strip()
            if len(url) <= _MAX_URL and url.isprintable() and not any(char in url for char in " \"'<>"):
                return url
    return ""


def gender(value: Mapping[str, Any], *names: str) -> int:
    """Return 1 for male, 2 for female, and 0 if these fields do not say."""
    found = {str(value.get(name)).strip().lower() for name in names}
    return 1 if found & _MALE else 2 if found & _FEMALE else 0


def expiration(now: datetime, value: Mapping[str, Any], name: str) -> int:
    """Return the Unix seconds at which something expires. The field is the lifetime in seconds, a number or digits.

    0 means that the field is missing or that it does not expire.
    """
    lifetime = value.get(name)
    if isinstance(lifetime, str) and lifetime.isascii() and lifetime.isdecimal():
        lifetime = int(lifetime[:20])
    if not isinstance(lifetime, int) or isinstance(lifetime, bool) or not 0 < lifetime < _MAX_LIFETIME_S:
        return 0
    return int(now.timestamp()) + lifetime


def unix_seconds(value: Mapping[str, Any], name: str) -> int:
    """Return a time, or 0 if it is missing, not a time, or that of something that does not expire."""
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 < found < _MAX_TIME_S else 0


def nested(value: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Return the object at `path`, or an empty object if there is none."""
    found: Any = value
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
