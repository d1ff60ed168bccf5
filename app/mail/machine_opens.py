"""Recognizes requests for a tracking pixel by programs that fetch images before, or without, a reader."""

import re
from collections.abc import Mapping
from functools import lru_cache

_PREFETCH_HEADERS = ("sec-purpose", "purpose", "x-purpose", "x-moz")
_PREFETCH = re.compile(r"prefetch|preview", re.IGNORECASE)
# `Mozilla/5.0` alone is Apple's Mail Privacy Protection. A user agent that ends with `Edge/12.246 Mozilla/5.0` is
# Gmail's prefetch. `GoogleImageProxy` and `YahooMailProxy` fetch images for readers.
_PROGRAM = re.compile(
    r"^(Mozilla/5\.0)?$|Edge/12\.246 Mozilla/5\.0$"
    r"|barracuda|proofpoint|mimecast|ciscosecureemail|ironport|fireeye|trendmicro|\btmes\b|sophos|fortimail"
    r"|safelinks|bingpreview|bot\b|crawler|spider|scanner|curl/|wget/|python-|java/|go-http-client|headless",
    re.IGNORECASE,
)


def is_machine(user_agent: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request says that it is a prefetch, or its user agent is a known program or empty.

    The names of `headers` are in lower case, or `headers` ignores case.
    """
    if _is_program(user_agent):
        return True
    return any(name in headers and _PREFETCH.search(headers[name]) for name in _PREFETCH_HEADERS)


@lru_cache(maxsize=1024)
def _is_program(user_agent: str) -> bool:
    return _PROGRAM.search(user_agent.strip()) is not None
