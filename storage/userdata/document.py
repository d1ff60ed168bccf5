"""The JSON document of an export. It is written in pieces, because it may be large."""

from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Any

from storage.userdata.exported import ExportedUser
from storage.userdata.tables import USER_TABLES
from streams.wire.codec import dumps


async def document(user: ExportedUser) -> AsyncGenerator[bytes]:
    """Return the JSON of all exports of `USER_TABLES` in pieces. No connection is held between them."""
    members: dict[str, Any] = {}
    for table in USER_TABLES:
        if table.exported is not None:
            exported = table.exported(user)
            members[table.exported_as or table.name] = (
                await exported if isinstance(exported, Awaitable) else exported
            )
    return _json(members)


async def _json(value: Any, prefix: bytes = b"") -> AsyncGenerator[bytes]:
    """Yield a prefix and the JSON of a value. Async generators in it become lists."""
    if isinstance(value, AsyncGenerator):
        async with aclosing(value):
            separator = opening = prefix + b"["
            async for item in value:
                async with aclosing(_json(item, separator)) as pieces:
                    async for piece in pieces:
                        yield piece
                separator = b","
        yield separator + b"]" if separator is opening else b"]"
    elif isinstance(value, dict) and any(isinstance(member, AsyncGenerator) for member in value.values()):
        separator = prefix + b"{"
        for name, member in value.items():
            async with aclosing(_json(member, separator + dumps(name) + b":")) as pieces:
                async for piece in pieces:
                    yield piece
            separator = b","
        yield b"}"
    else:
        yield prefix + dumps(value)
