"""Admin API: the streams that run now, in all processes."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from actors.runtime.inspection import Wanted, running
from app.admin.apps import require_app
from app.admin.area import FOR_VIEWERS
from app.admin.streams.processes import ask_others
from app.http.paging import IdCursor, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from storage.errors import UnknownApp
from streams.wire.model import Model, QueryInt

Kind = Literal["conversation", "tts", "pronunciation"]


class LiveQuery(Model):
    app: str | None = None
    user_id: str | None = None
    kind: Kind | None = None
    strategy: str | None = None
    """List only streams that this strategy answers now."""
    process: str | None = None
    """List only streams of this process."""
    sort: Literal["created", "-created"] = "created"
    """Whether the oldest or the newest streams come first."""
    before: IdCursor | None = None
    """`next` of the page before this one; absent: the first page."""
    size: QueryInt = Field(default=100, ge=1, le=1000)
    """Maximum number of streams."""


class StreamRow(Model):
    stream_id: str
    kind: Kind
    app: str
    user_id: str
    process: str
    """The process that has the stream."""
    strategy: str | None = None
    """The strategy that answers, or is waited for. Absent before the first attempt."""
    vendor: str | None = None
    """The vendor of that strategy."""
    model: str | None = None
    """The vendor's name of the model, if the strategy names one."""
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
    """A page of the running streams, and which processes have answered."""

    streams: list[StreamRow]
    total: int
    """Number of all matching streams, on all pages."""
    next: str | None = None
    """`before` of the next page; absent on the last page."""
    processes: list[str]
    """The processes that have answered."""
    silent: list[str]
    """Processes that did not answer in time. Their streams are missing."""
    complete: bool
    """False if `silent` is not empty, or if no store was available to find the other processes."""


async def live(call: Call, query: Query[LiveQuery]) -> LiveReply:
    """List running streams of all processes, oldest first.

    The process that responds asks the others, and waits for two seconds at most. Processes that have not answered
    by then are named in `silent`.
    """
    services, own = call.services, call.services.heartbeat.process
    wanted = Wanted(
        query.app,
        query.user_id,
        query.kind,
        query.strategy,
        newest_first=query.sort == "-created",
        position=query.before,
        size=query.size + 1,
    )
    answers = await ask_others(services, {"op": "list", "wanted": wanted._asdict()}, process=query.process)
    found = dict(answers.found)
    if query.process in {None, own}:
        found[own] = await running(services.supervisor, wanted)
    total = sum(answer["total"] for answer in found.values())
    if not total and query.app is not None:
        require_app(call, query.app)
    rows = [row_of(process, row) for process, answer in found.items() for row in answer["streams"]]
    rows.sort(key=lambda row: row.stream_id, reverse=wanted.newest_first)
    page, further = page_of(rows, query.size, lambda row: row.stream_id)
    return LiveReply(
        streams=list(page),
        total=total,
        next=further,
        processes=sorted(found),
        silent=answers.silent,
        complete=answers.complete,
    )


def row_of(process: str, found: Mapping[str, Any]) -> StreamRow:
    """Return one line about a stream of a process."""
    return StreamRow.model_validate({**found, "process": process})


LIVE_ROUTES = [Endpoint("GET", "/admin/api/streams", live, FOR_VIEWERS, errors=(UnknownApp,))]
