"""Keys of objects. The extension of a key determines the content type."""

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
        "amr": "audio/amr",
        "awb": "audio/amr-wb",
        "aac": "audio/aac",
        "caf": "audio/x-caf",
        "aiff": "audio/aiff",
        "rf64": "audio/x-rf64",
        "wma": "audio/x-ms-wma",
        "au": "audio/basic",
        "w64": "audio/x-w64",
        "voc": "audio/x-voc",
        "wv": "audio/x-wavpack",
        "latm": "audio/mp4a-latm",
        "qcp": "audio/qcelp",
        "ts": "video/mp2t",
        "mov": "video/quicktime",
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
"""Content types by extension. None of them can execute scripts in a browser."""

_EXTENSIONS = {content_type: extension for extension, content_type in CONTENT_TYPES.items()}


def content_type_of(key: str) -> str:
    """Return the content type of a key. Raises `ValueError` if it is invalid and so unsafe in paths and headers."""
    match = _KEY.fullmatch(key)
    if match is None or len(key) > MAX_KEY or match[1] not in CONTENT_TYPES:
        raise ValueError(f"not a key of an object: {key[:MAX_KEY]!r}")
    return CONTENT_TYPES[match[1]]


def extension_of(content_type: str) -> str:
    """Return the extension of keys for this content type, without the dot."""
    return _EXTENSIONS[content_type]


def check_put(key: str, content_type: str) -> None:
    """Raise `ValueError` unless `key` is valid and its extension is that of `content_type`."""
    if content_type_of(key) != content_type:
        raise ValueError(f"{key!r} is not a key for {content_type}")
