"""Upload of a file that a prediction or an image refers to (§4.16)."""

from app.http.rows.endpoint import Call
from app.http.rows.inputs import RawBody
from storage.configs.kinds.base import MIB
from storage.objects.keys import extension_of
from storage.tasks import task_files
from streams.audio.media import HEAD_BYTES, media_type
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model

MAX_BYTES = 20 * MIB
_TYPES = frozenset(
    {
        "image/png", "image/jpeg", "image/webp", "image/gif",
        "audio/wav", "audio/mpeg", "audio/ogg", "audio/mp4", "video/mp4", "application/pdf",
    }
)  # fmt: skip


class UploadedFile(Model):
    """The link to the uploaded file."""

    url: str
    """A link to the file, which is valid for 24 hours."""


async def upload(call: Call, raw: RawBody) -> UploadedFile:
    """Upload a file.

    Put the `url` of the response into the input of a prediction. The type is recognized by the content: PNG, JPEG,
    WebP, GIF, WAV, MP3, Ogg, MP4 or PDF, of at most 20 MiB.
    """
    found = media_type(raw[:HEAD_BYTES])
    if found is None or found not in _TYPES:
        raise InvalidParameter("the body must be a PNG, JPEG, WebP, GIF, WAV, MP3, Ogg, MP4 or PDF file")
    services, app_id, uid = call.services, call.app_id, call.caller.user
    key = task_files.new_key(app_id, uid, origin="uploads", extension=extension_of(found))
    async with services.database.connection() as conn:
        is_kept = await task_files.add(conn, app_id, uid, key=key, now=services.clock.now(app_id))
    if is_kept:  # Otherwise the user has been deactivated since the check of the session.
        await services.objects.put(key, raw, content_type=found)
    return UploadedFile(url=services.objects.url(key))
