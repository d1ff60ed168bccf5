"""The replies of handlers, and their conversion into responses."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aiohttp import web

from streams.wire.codec import dumps
from streams.wire.model import Model

T = TypeVar("T", bound=Model)


class Empty(Model):
    """An empty object."""


@dataclass(frozen=True, slots=True)
class Json(Generic[T]):
    """A reply with the fields of `T`, as a value that is encoded without validation.

    For large values, for values that come from elsewhere, and for replies with headers.
    """

    value: Any
    headers: Mapping[str, str] = field(default_factory=dict)


DeferredResponse = Coroutine[Any, Any, web.StreamResponse]
"""A coroutine that a handler returns and the pipeline awaits.

The stack frames of the handler are freed first, so that a long stream does not keep them in memory.
"""

Reply = Model | Json[Any] | web.StreamResponse | DeferredResponse | None
"""A model or `Json` is sent with status 200. `None` is an empty 200 response, `Empty()` one with the body `{}`."""


def response_to(reply: Reply) -> web.StreamResponse | DeferredResponse:
    if reply is None:
        return web.Response()
    if isinstance(reply, Model):
        body = reply.model_dump_json(exclude_none=True).encode()
        return web.Response(body=body, content_type="application/json")
    if isinstance(reply, Json):
        return json_response(reply.value, headers=reply.headers)
    return reply


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=dumps(value), status=status, headers=headers, content_type="application/json")
