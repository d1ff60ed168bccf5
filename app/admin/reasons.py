"""The reason that an operator gives for a change."""

from app.http.rows.endpoint import Call
from storage.operators.audit import Origin
from streams.wire.errors import InvalidParameter


def origin_with_reason(call: Call) -> Origin:
    """Return the origin of a change that needs a reason. Raises `InvalidParameter` if the call has none."""
    origin = call.origin
    if not origin.reason:
        raise InvalidParameter("X-Parley-Reason is required")
    return origin
