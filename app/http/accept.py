"""What a client accepts: the media types and codings of `Accept` headers."""

import re

from aiohttp import web

_MAX_VALUES = 30
_WEIGHT = re.compile(r"[01](\.\d{0,3})?", re.ASCII)


def weights(request: web.Request, header: str) -> dict[str, float]:
    """Return the values of an `Accept` header in lower case, with their weights (RFC 9110 §12.4.2).

    A value whose weight cannot be read has the weight 0: it is named, but not accepted.
    """
    found = {}
    for part in ",".join(request.headers.getall(header, [])).lower().split(",")[:_MAX_VALUES]:
        value, *parameters = (text.strip() for text in part.split(";"))
        q = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        found[value] = float(q) if _WEIGHT.fullmatch(q) else 0.0
    return found
