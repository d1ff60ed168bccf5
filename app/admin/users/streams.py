"""Admin API: cancels a running stream of a user, in whichever process it runs."""

from typing import Annotated

from pydantic import AfterValidator

from actors.runtime.actor import Actor
from actors.runtime.context import Owner
from actors.runtime.relay import cancel
from app.admin.area import FOR_EDITORS
from app.admin.reasons import origin_with_reason
from app.admin.streams.processes import ask_others
from app.admin.users.users import USER_ERRORS, UserPath, user_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from app.http.rows.replies import Empty
from storage.accounts import users
from storage.conversations.admission import StreamLocation
from storage.operators import audit
from storage.operators.audit import Subject
from streams.wire.errors import ItemNotFound, Unavailable, ValkeyError, ValkeyUnavailable, listed
from streams.wire.owned import Owned


class StreamNotRunning(ItemNotFound):
    """No stream of the user with this id is running."""

    def __init__(self, stream_id: str) -> None:
        super().__init__(f"stream {listed([stream_id])} does not run")


_STREAM = Owned(StreamNotRunning)


class StreamPath(UserPath):
    stream_id: Annotated[str, AfterValidator(_STREAM.validate)]
    """A running stream of the user."""


async def cancel_stream(call: Call, path: Path[StreamPath]) -> Empty:
    """Cancel a running stream of a user.

    The answer so far is stored, as if the user had cancelled it. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    services, owner = call.services, Owner(path.app, path.user_id)
    async with services.database.connection() as conn:
        await user_of(call, conn, path, find=users.find_any)
    found = services.supervisor.find(path.stream_id, owner) or await _elsewhere(call, path)
    if found is None or (isinstance(found, Actor) and found.outcome.done()):
        raise StreamNotRunning(path.stream_id)
    async with services.database.transaction() as conn:
        after = {"stream_id": path.stream_id}
        subject = Subject(path.app, "user", path.user_id)
        await audit.record_change(conn, origin, action="stream.cancel", subject=subject, after=after)
    if isinstance(found, Actor):
        await cancel(found, None)
    elif not await services.relay.cancel(owner, found, None):
        raise Unavailable("the process that has the stream did not answer")
    return Empty()


async def _elsewhere(call: Call, path: StreamPath) -> StreamLocation | None:
    """Return where a stream of another process runs, or `None` if that process says that it has ended."""
    location = await call.services.admissions.find(path.app, path.user_id, path.stream_id)
    if location is None:
        return None
    wanted = {"app_id": path.app, "stream_id": path.stream_id}
    answers = await ask_others(call.services, {"op": "inspect", "wanted": wanted}, process=location.process)
    found = answers.found.get(location.process)
    return None if found is not None and found["ended"] else location


USER_STREAM_ROUTES = [
    Endpoint(
        "POST",
        "/admin/api/users/{app}/{user_id}/streams/{stream_id}/cancel",
        cancel_stream,
        FOR_EDITORS,
        errors=(*USER_ERRORS, StreamNotRunning, Unavailable, ValkeyError, ValkeyUnavailable),
    ),
]
