"""The files that hosts of models and images make. They are read from a host's own addresses only."""

import binascii
import re
from base64 import b64decode
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from urllib.parse import urlsplit

from vendors.account import Account
from vendors.errors import Garbled
from vendors.http.outgoing import ReadCall
from vendors.http.transport import VendorHttp

_URL_CHARACTERS = 4096
_FILE_PATH = re.compile(r"/files/[\w-]+/[\w-][\w.-]*", re.ASCII)
"""The path of files at an account's own address, below the path of the API or beside it."""
_DATA = "data:"


def is_file(account: Account, text: str, *, hosts: Sequence[str]) -> bool:
    """Return whether `text` is the URL of a file: among those at the account's address, at one of `hosts`, or data.

    `hosts` include their subdomains, and are called with TLS. Other URLs may lead anywhere, so they stay text. A
    model may write any text, so only paths of files are read from the account's address, and without its key.
    """
    if text.startswith(_DATA):
        return ";base64," in text[:256] and _data_of(text) is not None
    if len(text) > _URL_CHARACTERS or not text.isascii() or not text.isprintable() or " " in text:
        return False
    if _is_own_file(account, text):
        return True
    try:
        url = urlsplit(text)
        name, port = url.hostname or "", url.port
    except ValueError:
        return False
    named = any(name == host or name.endswith(f".{host}") for host in hosts)
    return named and url.scheme == "https" and port in {None, 443} and url.username is None


async def read_file(http: VendorHttp, account: Account, url: str, *, limit_bytes: int) -> AsyncGenerator[bytes]:
    """Yield the content of a file for which `is_file` is true. Raises `VendorError`."""
    platform = account.platform
    if url.startswith(_DATA):
        yield _data_of(url) or b""
        return
    size = 0
    async with http.stream(ReadCall(platform, url)) as response, aclosing(response.pieces()) as pieces:
        async for piece in pieces:
            size += len(piece)
            if size > limit_bytes:
                raise Garbled(platform, f"has made a file of more than {limit_bytes} bytes")
            yield piece


def _is_own_file(account: Account, text: str) -> bool:
    """Return whether a URL is that of a file at the scheme, the host and the port of the account's address."""
    try:
        url, own = urlsplit(text), urlsplit(account.base_url)
    except ValueError:
        return False
    if not url.hostname or (url.scheme, url.netloc) != (own.scheme, own.netloc):
        return False
    base = own.path.rstrip("/")
    folders = (base, base.rpartition("/")[0])
    return any(
        url.path.startswith(folder) and _FILE_PATH.fullmatch(url.path.removeprefix(folder)) for folder in folders
    )


def _data_of(url: str) -> bytes | None:
    try:
        return b64decode(url.partition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        return None
