"""The transaction of a handler, which stores the handler's answer together with its effect."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiohttp import web

from app.http.rows.replies import Json, response_to
from storage.jobs import idempotency
from storage.jobs.idempotency import Claim, StoredAnswer
from storage.postgres.database import Connection, Database
from streams.wire.ids import new_id
from streams.wire.model import Model

R = TypeVar("R", bound=Model | Json[Any] | None)


class Transaction:
    """The transaction in which a handler has its effect. Its endpoint accepts an `Idempotency-Key`.

    The handler begins it once, as its last step that can fail, and passes it the answer:

        async with transaction.begin() as conn:
            await add_order(conn, ...)
            return transaction.answer(Ordered(...))

    Effect and answer are committed together. Calls to other systems come before `begin`, so that no connection is
    held meanwhile. Code that needs the effect to be committed comes after the block.
    """

    def __init__(self, database: Database, held: Claim | None) -> None:
        """`held` is the claim of the request's key, if it has one."""
        self._database = database
        self._held = held
        self._reply: Model | Json[Any] | None = None
        self._has_reply = False
        self._committed = False
        self.operation_id = new_id() if held is None else held.operation_id
        """An id for rows, and for keys of calls to other systems. A repeat after a failure or a crash has the same
        id, so it finds the effects that the earlier call had outside of its transaction."""

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[Connection]:
        """Acquire a connection in the transaction, which ends with the block."""
        async with self._database.transaction() as conn:
            yield conn
            if not self._has_reply:
                raise RuntimeError("the transaction has no answer")
            if self._held is not None:
                await idempotency.store(conn, self._held, answer=_stored(self._reply))
        self._committed = True

    def check_committed(self) -> None:
        """Raise an error if the handler has ended without its transaction, so that its answer is not stored."""
        if not self._committed:
            raise RuntimeError("the handler has not begun its transaction")

    def answer(self, reply: R) -> R:
        """Set the reply to be stored, and return it."""
        self._reply, self._has_reply = reply, True
        return reply


def _stored(reply: Model | Json[Any] | None) -> StoredAnswer:
    response = response_to(reply)
    assert isinstance(response, web.Response), "such a reply has its whole body"
    body = response.body
    assert body is None or isinstance(body, bytes), "a body of JSON is bytes"
    # The names are of a subclass of `str`, which `dumps` does not accept.
    return StoredAnswer(response.status, {str(name): value for name, value in response.headers.items()}, body)
