"""Finds passwords in URLs of stores that are not encoded, so that a part of them is read as something else.

`@`, `/`, `#` and `?` end the password, and what follows becomes the host, the path or an option. PostgreSQL's libpq
and asyncpg end the user and the password at the first `@`, and redis-py at the last one.
"""

import re
from urllib.parse import urlsplit

ADVICE = (
    "the password seems to have a special character that is not encoded: write @ as %40, / as %2F, # as %23,"
    " ? as %3F, % as %25, & as %26 and + as %2B"
)
ENCODED = (
    "the password in the URL has % or +, which is decoded before it is sent: if the password itself has it, write"
    " % as %25, and + in an option as %2B"
)
_HOSTS_END = re.compile(r"[/?#]")
_NOT_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAY_HAVE_AT = frozenset(
    {"application_name", "client_name", "options", "passfile", "password", "sslpassword", "user", "username"}
)
"""Options whose values may have an `@`."""


def has_unencoded_password(url: str) -> bool:
    """Return whether the password of a URL ends too early, or has a `%` that encodes nothing."""
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        return False  # Its path is that of a socket, and may have any character.
    access, *_ = _HOSTS_END.split(rest, maxsplit=1)
    path, _, query = rest[len(access) :].partition("?")
    if "#" in rest or "@" in path:
        return True  # No URL of a store has a fragment.
    for option in filter(None, query.split("&")):
        name, equals, value = option.partition("=")
        ends_password = not equals and "password=" in query
        if ends_password or "@" in name or ("@" in value and name not in _MAY_HAVE_AT):
            return True
    if scheme.partition("+")[0] in {"redis", "rediss"}:
        return False
    return access.count("@") > 1 or _NOT_ENCODED.search(access) is not None


def has_encoded_password(url: str) -> bool:
    """Return whether the password that is sent differs from the text in the URL."""
    parts = urlsplit(url)
    options = [option for option in parts.query.split("&") if option.startswith("password=")]
    return "%" in parts.netloc.rpartition("@")[0] or any("%" in option or "+" in option for option in options)
