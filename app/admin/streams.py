"""The admin endpoint that lists the running streams of this process."""

import time
from typing import Literal

from pydantic import Field

from actors.runtime.actor import Actor
from app.admin.apps import require_app
from app.admin.area import FOR_VIEWERS
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.errors import UnknownApp
from streams.wire.model import Model, QueryInt

Kind = Literal["conversation", "tts", "pronunciation"]


class LiveQuery(Model):
    app: str | None = None
    kind: Kind | None = None
    size: QueryInt = Field(default=100, ge=1, le=1000)


class StreamRow(Model):
    stream_id: str
    kind: Kind
    app: str
    user_id: str
    age_ms: int
    """Milliseconds since the request arrived."""
    state: Literal["hearing", "answering", "stopping", "settling"]
    """`hearing`: input is arriving. `answering`: the answer is being produced. `stopping`: the stream was
    requested to stop. `settling`: the answer is complete and is being stored."""
    readers: int
    events: int
    bytes: int
    """Total size of its events so far."""
    lag_bytes: int
    """Bytes that its slowest reader has not read yet."""
    request_id: str


class LiveReply(Model):
    streams: list[StreamRow]
    total: int
    """Number of all matching streams, regardless of `size`."""


async def live(call: Call, query: Query[LiveQuery]) -> LiveReply:
    """List running streams, oldest first.

    The list covers only the process that responds. If several processes share the port, each also responds on
    its own port: `PARLEY_METRICS_PORT` plus the number of the process.
    """
    actors = [
        actor
        for actor in call.services.supervisor.live()
        if query.app in {None, actor.ctx.owner.app_id} and query.kind in {None, actor.kind}
    ]
    if not actors and query.app is not None:
        require_app(call, query.app)
    actors.sort(key=lambda actor: actor.ctx.receipt.arrived)
    return LiveReply(streams=[_row(actor) for actor in actors[: query.size]], total=len(actors))


def _row(actor: Actor) -> StreamRow:
    ctx, log = actor.ctx, actor.log
    return StreamRow.model_validate(
        {
            "stream_id": ctx.stream_id,
            "kind": actor.kind,
            "app": ctx.owner.app_id,
            "user_id": ctx.owner.user_id,
            "age_ms": round((time.monotonic() - ctx.receipt.arrived) * 1000),
            "state": actor.state,
            "readers": actor.readers,
            "events": log.last_id,
            "bytes": log.size_bytes,
            "lag_bytes": log.lag,
            "request_id": ctx.request_id,
        }
    )


STREAM_ROUTES = [Endpoint("GET", "/admin/api/streams", live, FOR_VIEWERS, errors=(UnknownApp,))]
