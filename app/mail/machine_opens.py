"""Which requests of a tracking pixel come from programs that fetch images before, or without, a reader."""

import re
from collections.abc import Mapping

_PREFETCH_HEADERS = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")
_PREFETCH = re.compile(r"prefetch|preview", re.IGNORECASE)
# `Mozilla/5.0` alone is Apple's Mail Privacy Protection, and the one that ends with `Edge/12.246 Mozilla/5.0` the
# prefetch of Gmail. Its `GoogleImageProxy` and `YahooMailProxy` fetch images for readers.
_PROGRAM = re.compile(
    r"^(Mozilla/5\.0)?$|Edge/12\.246 Mozilla/5\.0$"
    r"|barracuda|proofpoint|mimecast|ciscosecureemail|ironport|fireeye|trendmicro|\btmes\b|sophos|fortimail"
    r"|safelinks|bingpreview|bot\b|crawler|spider|scanner|curl/|wget/|python-|java/|go-http-client|headless",
    re.IGNORECASE,
)


def is_machine(user_agent: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request says that it is a prefetch, or its user agent is a known program or empty."""
    if _PROGRAM.search(user_agent.strip()) is not None:
        return True
    return any(name in headers and _PREFETCH.search(headers[name]) for name in _PREFETCH_HEADERS)
