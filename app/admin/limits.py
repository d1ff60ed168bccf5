"""Admin API of limits: which ones have refused calls in the last minutes, in all processes."""

from collections import Counter

from app.admin.area import FOR_VIEWERS
from app.http.rows.endpoint import Call, Endpoint
from storage.operators import figures
from streams.wire.model import Model


class LimitRow(Model):
    limit: str
    """The name of a rate, or of a field of the config kind `limits`. `connections_per_process` and
    `connections_per_address` are settings."""
    refused: int


class LimitsReply(Model):
    """The limits that have refused calls, and for how long calls were counted."""

    window_s: float
    """The period that the counts cover, of the process that runs longest: at most five minutes."""
    processes: int
    """How many processes are counted."""
    limits: list[LimitRow]
    """The most frequent first. Limits that have refused nothing are left out."""


async def read_limits(call: Call) -> LimitsReply:
    """Read which limits have refused calls in the last minutes."""
    found = (await figures.of_all(call.services.valkey)).values()
    refused: Counter[str] = Counter()
    for process in found:
        refused.update(process.get("refused", {}))  # An earlier version does not count them.
    return LimitsReply(
        window_s=max((process["window_s"] for process in found), default=0.0),
        processes=len(found),
        limits=[LimitRow(limit=limit, refused=count) for limit, count in refused.most_common()],
    )


LIMIT_ROUTES = [Endpoint("GET", "/admin/api/limits", read_limits, FOR_VIEWERS)]
