"""Admin API of exports: requests the export of a user's data, and makes links to its file."""

from datetime import timedelta
from typing import Literal

from app.admin.apps import require_app
from app.admin.area import FOR_ADMINS
from app.admin.reasons import origin_with_reason
from app.admin.users.users import USER_ERRORS, UserPath, user_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from storage.accounts import users
from storage.configs.kinds.limits import LIMITS
from storage.errors import UnknownApp
from storage.operators import audit
from storage.operators.audit import Subject
from storage.userdata import exports
from storage.userdata.exports import Export
from streams.wire.codec import rfc3339
from streams.wire.errors import Conflict, ItemNotFound, listed
from streams.wire.model import Model


class ExportNotFound(ItemNotFound):
    """The user has no export, or it has expired."""

    def __init__(self, user_id: str) -> None:
        super().__init__(f"user {listed([user_id])} has no export")


class ExportUnfinished(Conflict):
    """The export is not finished, or has failed."""

    def __init__(self) -> None:
        super().__init__("the export is not finished")


class ExportState(Model):
    """The state of the user's export."""

    status: Literal["running", "finished", "failed"]
    requested_at: str
    error: str | None = None
    """Why the export failed. It can be requested again."""
    expires_at: str | None = None
    """When the file is deleted: `export_days` of the app's limits after it was finished."""


class ExportLink(Model):
    """The link to the file of the export."""

    url: str
    """A link to the file, valid for ten minutes. It needs no token: whoever has it can read the file."""


async def request_export(call: Call, path: Path[UserPath]) -> ExportState:
    """Export a user's data.

    A worker writes a JSON file with the account, its identities, its conversations with all records, and the names
    of stored audio. Until it has finished, further calls return the same export. A new export replaces a finished
    or failed one. Because the file contains conversations, the role `admin` is needed to export it and to read it.
    The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    now = call.services.clock.now(path.app)
    async with call.services.database.transaction() as conn:
        await user_of(call, conn, path, find=users.lock)
        export = await exports.request(conn, path.app, path.user_id, now=now, origin=origin)
    return export_state(call, export)


async def read_export(call: Call, path: Path[UserPath]) -> ExportState:
    """Read the state of a user's export."""
    require_app(call, path.app)
    async with call.services.database.connection() as conn:
        export = await exports.find(conn, path.app, path.user_id)
    if export is None:
        raise ExportNotFound(path.user_id)
    return export_state(call, export)


async def link_export(call: Call, path: Path[UserPath]) -> ExportLink:
    """Make a link to the file of a user's export.

    The header `X-Parley-Reason` is required, and the audit log has each link that was made.
    """
    origin = origin_with_reason(call)
    require_app(call, path.app)
    async with call.services.database.transaction() as conn:
        export = await exports.find(conn, path.app, path.user_id)
        if export is None:
            raise ExportNotFound(path.user_id)
        if export.finished_at is None:
            raise ExportUnfinished
        subject = Subject(path.app, "user", path.user_id)
        await audit.record_change(conn, origin, action="user.export_read", subject=subject)
    return ExportLink(url=call.services.objects.url(export.object_key, valid_s=_LINK_S))


def export_state(call: Call, export: Export) -> ExportState:
    requested_at = rfc3339(export.requested_at)
    if export.failed:
        return ExportState(status="failed", requested_at=requested_at, error=_FAILED)
    if export.finished_at is None:
        return ExportState(status="running", requested_at=requested_at)
    days = call.services.configs.singleton(LIMITS, export.app_id).export_days
    return ExportState(
        status="finished",
        requested_at=requested_at,
        expires_at=rfc3339(export.finished_at + timedelta(days=days)),
    )


_LINK_S = 10 * 60
"""The validity of a link, which may be forwarded by mistake. Long enough to begin a download."""
_FAILED = "the job that writes the file has failed in all attempts, or was deleted"
_PATH = "/admin/api/users/{app}/{user_id}/export"

EXPORT_ROUTES = [
    Endpoint("POST", _PATH, request_export, FOR_ADMINS, errors=USER_ERRORS),
    Endpoint("GET", _PATH, read_export, FOR_ADMINS, errors=(UnknownApp, ExportNotFound)),
    Endpoint(
        "POST", f"{_PATH}/link", link_export, FOR_ADMINS, errors=(UnknownApp, ExportNotFound, ExportUnfinished)
    ),
]
