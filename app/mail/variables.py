"""Limits on the variables of a request: their number, their size, and the URLs in them.

Clients choose the values, so an email must not lead its reader to a page that the app does not know.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any
from unicodedata import normalize

from pydantic import AfterValidator

from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter, listed

MAX_VARIABLES = 64
MAX_VALUE_BYTES = 4096

# Browsers ignore these characters in URLs, and read a backslash as a slash.
_IGNORED = re.compile(r"[\t\r\n]")
_URL = re.compile(
    r"""
    (?P<no_host>\b(?:javascript|vbscript|data|file|blob|cid|mailto|tel|sms):)
    | (?:(?P<scheme>[a-z][a-z0-9+.-]*):)?/{2,}(?P<host>[^\s/?\#"'<>]+)
    | \bhttps?:(?P<odd_host>[^\s/?\#"'<>]+)
    | \b(?P<www>www\.[^\s/?\#"'<>]+)
    | (?<![\w@.-])(?P<bare>(?:[\w-]+\.)+[^\W\d_][\w-]+(?::\d+)?)(?=[/?]|(?<=\d):|(?<=:\d))
    """,
    re.IGNORECASE | re.VERBOSE,
)


def _bounded(variables: dict[str, Any]) -> dict[str, Any]:
    if len(variables) > MAX_VARIABLES:
        raise ValueError(f"must have at most {MAX_VARIABLES} entries")
    for name, value in variables.items():
        if len(value.encode() if isinstance(value, str) else dumps(value)) > MAX_VALUE_BYTES:
            raise ValueError(f"must have values of at most {MAX_VALUE_BYTES} bytes, unlike {listed([name])}")
    return variables


CustomVariables = Annotated[dict[str, Any], AfterValidator(_bounded)]


def allowed_variables(given: dict[str, Any], names: Sequence[str], *, url_hosts: Sequence[str]) -> dict[str, Any]:
    """Return the variables in `names`. Raises `InvalidParameter` if one contains a URL of another host."""
    variables = {name: value for name, value in given.items() if name in names}
    for name, value in variables.items():
        if not all(is_known(host, url_hosts) for text in _texts(value) for host in hosts_in(text)):
            raise InvalidParameter(f"custom_variables.{name} must not contain a URL of a host that is not allowed")
    return variables


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings in a value, including those in objects, which templates can address."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def is_known(host: str, url_hosts: Sequence[str]) -> bool:
    return host.lower() in url_hosts


def hosts_in(text: str) -> Iterator[str]:
    """Yield the host and port of each URL in a text, as browsers and mail programs read it.

    The result is empty for a URL without a host, such as `javascript:`. It includes a user name before the host, so
    such a URL never matches an allowed host.
    """
    plain = _IGNORED.sub("", normalize("NFKC", text)).replace("\\", "/")
    for found in _URL.finditer(plain):
        scheme = (found["scheme"] or "https").lower()
        hosts = (found["host"], found["www"], found["bare"])
        host = next(filter(None, hosts), "").rstrip(".,;!)")  # The end of a sentence.
        yield host if scheme in {"http", "https"} else ""
