"""Files that requests for images name, which must be the user's own, and copies of those that hosts make."""

from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import unquote, urlsplit

from app.services import Services
from storage.objects import extension_of
from storage.objects.keys import content_type_of
from storage.tasks import task_files
from storage.tasks.image_tasks import ImageTask
from streams.audio.media import HEAD_BYTES, media_type
from streams.loop_time import wait_for_loop_time
from streams.wire.errors import InvalidParameter
from vendors.account import Account
from vendors.errors import Garbled
from vendors.hosts.downloads import download
from vendors.http.transport import VendorHttp

MAX_IMAGE_BYTES = 32 * 1024 * 1024
_MASK_BYTES = 6 * 1024 * 1024
_PIECE_BYTES = 48 * 1024
_PIECE_CHARACTERS = _PIECE_BYTES // 3 * 4
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_FILES = "files/"


class UserFiles:
    """The images that are stored for a user: those that the user has uploaded, and those that were made."""

    def __init__(self, services: Services, app_id: str, uid: str) -> None:
        self._services = services
        self._app_id = app_id
        self._uid = uid
        self._folders = tuple(task_files.folders_of(app_id, uid))

    async def link(self, url: str, *, field: str) -> str:
        """Return a new link to the image that `url`, or its path, names. Raises `InvalidParameter`."""
        return self._services.objects.url(await self._key(url, field=field))

    async def mask(self, given: str, *, field: str) -> str:
        """Return the base64 of a mask, which is given as a URL or as base64. Raises `InvalidParameter`."""
        if given.startswith(("http://", "https://", "/files/", *self._folders)):
            return await self._read(await self._key(given, field=field), field=field)
        return await _checked(given.partition(",")[2] if given.startswith("data:") else given, field=field)

    async def _read(self, key: str, *, field: str) -> str:
        """Return the base64 of a stored image."""
        pieces: list[str] = []
        size_bytes, head, left = 0, b"", b""
        async with self._services.objects.read(key) as stored:
            async for piece in stored:
                size_bytes += len(piece)
                if size_bytes > _MASK_BYTES:
                    raise InvalidParameter(f"{field} must have at most {_MASK_BYTES} bytes")
                head += piece[: HEAD_BYTES - len(head)]
                left += piece
                whole = len(left) - len(left) % 3
                await wait_for_loop_time()
                pieces.append(b64encode(left[:whole]).decode())
                left = left[whole:]
        _check_type(head, field=field)
        return "".join([*pieces, b64encode(left).decode()])

    async def _key(self, url: str, *, field: str) -> str:
        key = self._own_key(url)
        if key is None:
            raise InvalidParameter(f"{field} must be the URL of an image that is stored for the user")
        async with self._services.database.connection() as conn:
            exists = await task_files.is_of(conn, self._app_id, self._uid, key=key)
        if not exists:
            raise InvalidParameter(f"{field} names an image that does not exist")
        return key

    def _own_key(self, url: str) -> str | None:
        """Return the key that a URL or a path names if it is that of an image of the user."""
        try:
            parts, own = urlsplit(url), urlsplit(self._services.settings.public_url)
        except ValueError:
            return None
        prefix = ""
        if parts.scheme or parts.netloc:
            if (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
                return None
            prefix = own.path.strip("/")
        path = unquote(parts.path).lstrip("/")
        if prefix:
            path = path.removeprefix(f"{prefix}/")
        key = path.removeprefix(_FILES)
        try:
            is_image = content_type_of(key) in _IMAGES
        except ValueError:
            return None
        return key if is_image and key.startswith(self._folders) else None


async def _checked(text: str, *, field: str) -> str:
    """Return the base64 of an image. It is decoded in pieces, because all of it at once would take 50 ms."""
    size_bytes = 0
    for at in range(0, max(1, len(text)), _PIECE_CHARACTERS):
        await wait_for_loop_time()
        try:
            piece = b64decode(text[at : at + _PIECE_CHARACTERS], validate=True)
        except ValueError:
            raise InvalidParameter(f"{field} must be the URL of an image, or base64") from None
        if at and size_bytes % _PIECE_BYTES:
            raise InvalidParameter(f"{field} must be the URL of an image, or base64")  # Padding before the end.
        size_bytes += len(piece)
        if at == 0:
            _check_type(piece[:HEAD_BYTES], field=field)
    if size_bytes > _MASK_BYTES:
        raise InvalidParameter(f"{field} must have at most {_MASK_BYTES} bytes")
    return text


def _check_type(head: bytes, *, field: str) -> None:
    if media_type(head) not in _IMAGES:
        raise InvalidParameter(f"{field} must be an image: PNG, JPEG, WebP or GIF")


async def copy_image(services: Services, http: VendorHttp, account: Account, task: ImageTask, *, url: str) -> str:
    """Copy the image of a task from its host to the object store. Return its key.

    Nothing is copied for a deactivated user, whose task is deleted. Raises `VendorError`, including for a file that
    is too large or not an image.
    """
    opened = download(http, url, platform=account.platform, base_url=account.base_url, max_bytes=MAX_IMAGE_BYTES)
    async with opened as pieces:
        head = b""
        async for piece in pieces:
            head += piece
            if len(head) >= HEAD_BYTES:
                break
        content_type = media_type(head[:HEAD_BYTES])
        if content_type is None or content_type not in _IMAGES:
            raise Garbled(account.platform, "sent a file that is no image")
        key = task_files.new_key(task.app_id, task.uid, origin="images", extension=extension_of(content_type))
        async with services.database.connection() as conn:
            is_kept = await task_files.add(
                conn, task.app_id, task.uid, key=key, now=services.clock.now(task.app_id)
            )
        if not is_kept:
            return key
        async with aclosing(_joined(head, pieces)) as body:
            await services.objects.put(key, body, content_type=content_type)
    return key


async def _joined(head: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield head
    async for piece in rest:
        yield piece
