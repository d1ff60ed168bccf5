"""Admin API: cancels a running stream of a user, in whichever process it runs."""

from typing import Annotated

from pydantic import AfterValidator

from actors.runtime.context import Owner
from actors.runtime.relay import cancel
from app.admin.area import FOR_EDITORS
from app.admin.reasons import origin_with_reason
from app.admin.users.users import USER_ERRORS, UserPath, user_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from app.http.rows.replies import Empty
from storage.accounts import users
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
    async with services.database.transaction() as conn:
        await user_of(call, conn, path, find=users.find_any)
        after = {"stream_id": path.stream_id}
        subject = Subject(path.app, "user", path.user_id)
        await audit.record_change(conn, origin, action="stream.cancel", subject=subject, after=after)
    if (actor := services.supervisor.find(path.stream_id, owner)) is not None:
        await cancel(actor, None)
        return Empty()
    location = await services.admissions.find(path.app, path.user_id, path.stream_id)
    if location is None:
        raise StreamNotRunning(path.stream_id)
    if not await services.relay.cancel(owner, location, None):
        raise Unavailable("the process that has the stream did not answer")
    return Empty()


USER_STREAM_ROUTES = [
    Endpoint(
        "POST",
        "/admin/api/users/{app}/{user_id}/streams/{stream_id}/cancel",
        cancel_stream,
        FOR_EDITORS,
        errors=(*USER_ERRORS, StreamNotRunning, Unavailable, ValkeyError, ValkeyUnavailable),
    ),
]
