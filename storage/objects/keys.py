"""Keys of objects, and the type that each of them fixes."""

import re
from collections.abc import Mapping
from types import MappingProxyType

MAX_KEY = 512
_KEY = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/)*[A-Za-z0-9_-][A-Za-z0-9_-]*\.([a-z0-9]+)", re.ASCII)

CONTENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "mp3": "audio/mpeg",
        "wav": "audio/wav",
        "ogg": "audio/ogg",
        "flac": "audio/flac",
        "m4a": "audio/mp4",
        "webm": "audio/webm",
        "json": "application/json",
        "png": "image/png",
        "jpg": "image/jpeg",
        "webp": "image/webp",
        "gif": "image/gif",
        "mp4": "video/mp4",
        "pdf": "application/pdf",
        "bin": "application/octet-stream",
    }
)
"""The type of an object is that of its key's extension, wherever it is kept. No page runs any of them."""

_EXTENSIONS = {content_type: extension for extension, content_type in CONTENT_TYPES.items()}


def content_type_of(key: str) -> str:
    """The type of a key; a key that has one is safe in a path and in a header. Else `ValueError`."""
    found = _KEY.fullmatch(key)
    if found is None or len(key) > MAX_KEY or found[1] not in CONTENT_TYPES:
        raise ValueError(f"not a key of an object: {key[:MAX_KEY]!r}")
    return CONTENT_TYPES[found[1]]


def extension_of(content_type: str) -> str:
    """What a key of an object of this type ends with, without the dot."""
    return _EXTENSIONS[content_type]


def check_put(key: str, content_type: str) -> None:
    if content_type_of(key) != content_type:
        raise ValueError(f"{key!r} is no key of {content_type}")
