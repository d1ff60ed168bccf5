"""`Idempotency-Key` of endpoints whose handler takes a `Transaction`: repeats get the answer to the first call."""

import asyncio
import string
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from app.http.callers.addresses import client_network
from app.http.callers.caller import Access
from app.http.rows.endpoint import Call
from app.http.rows.replies import DeferredResponse, response_to
from app.http.rows.transactions import Transaction
from app.services import Services
from storage.errors import AnswerNotKept, KeyReused, RequestRunning
from storage.jobs import idempotency
from storage.jobs.idempotency import Claim, RequestKey
from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter, StoreError
from streams.wire.ids import sha256_hex
from streams.wire.model import Model

ERRORS = (KeyReused, RequestRunning, AnswerNotKept)
"""The errors of a key, in addition to `InvalidParameter`."""
HEADER = "Idempotency-Key"
DESCRIPTION = (
    "1 to 255 visible ASCII characters. For 48 hours, a repeated request with the same key has no further effect: "
    "it gets the response to the first one, with the header `Idempotent-Replayed: true`. An error frees the key."
)
REPLAYED = "Idempotent-Replayed"
_KEY_CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation)
_RELEASE_S = 5


def key_in(request: web.Request) -> str | None:
    """Return the request's `Idempotency-Key`, if it has one. Raises `InvalidParameter` for other characters."""
    key = request.headers.get(HEADER)
    if key is not None and (not 1 <= len(key) <= 255 or not _KEY_CHARACTERS.issuperset(key)):
        raise InvalidParameter(f"{HEADER} must be 1 to 255 visible ASCII characters")
    return key


def required_key(request: web.Request) -> str:
    """Return the request's `Idempotency-Key`. Raises `InvalidParameter` if it has none."""
    key = key_in(request)
    if key is None:
        raise InvalidParameter(f"{HEADER} is required")
    return key


def request_key_of(call: Call, given: Mapping[str, Any]) -> RequestKey | None:
    """Return what identifies the request, if it has a key. `given` are the arguments of its handler.

    A key belongs to one caller and one endpoint. Both paths of an endpoint share it, as do its aliases.
    """
    key = key_in(call.request)
    if key is None:
        return None
    row = call.endpoint.original
    values = {
        name: value.model_dump(mode="json") if isinstance(value, Model) else sha256_hex(value)
        for name, value in given.items()
    }
    # Calls of operators are for no app, and the header that may name one is not checked.
    app_id = "" if row.area.access is Access.ADMIN else call.app_id
    digest = sha256_hex(f"{_who(call)} {row.method} {row.path} {key}".encode())
    return RequestKey(app_id, digest, sha256_hex(dumps(values)))


def _who(call: Call) -> str:
    caller = call.caller
    if call.endpoint.area.access is Access.ADMIN:
        return "root" if caller.operator is None else f"operator:{caller.operator.operator_id}"
    if caller.user_id is not None:
        return f"user:{caller.user_id}"
    if caller.server_key is not None:
        return f"key:{caller.server_key}"
    return f"address:{client_network(call.request, call.services.settings.trusted_proxies)}"


async def find_response(services: Services, key: RequestKey) -> web.Response | None:
    """Return the stored response to the request. Raises an error if its key cannot be used."""
    async with services.database.connection() as conn:
        used = await idempotency.find(conn, key)
    answer = None if used is None else used.answer_to(key)
    if answer is None:
        return None
    return web.Response(status=answer.status, headers={**answer.headers, REPLAYED: "true"}, body=answer.body)


async def answer_once(
    call: Call, key: RequestKey | None, given: Mapping[str, Any]
) -> web.StreamResponse | DeferredResponse:
    """Call the handler with its transaction, or return the response that another call has stored meanwhile.

    If the handler fails, the key is free again.
    """
    database, row, held = call.services.database, call.endpoint, None
    if key is not None:
        async with database.connection() as conn:
            held = await idempotency.claim(conn, key)
        if held is None:
            if (response := await find_response(call.services, key)) is not None:
                return response
            raise RequestRunning  # The call that had the key has failed just now.
    transaction = Transaction(database, held)
    assert row.inputs.transaction is not None, "the caller has checked this"
    try:
        reply = await row.handler(call, **given, **{row.inputs.transaction.name: transaction})
        transaction.check_committed()
    except Exception:
        if held is not None:
            await _release(call.services, held)
        raise
    return response_to(reply)


async def _release(services: Services, held: Claim) -> None:
    """Free the key. If PostgreSQL is unavailable, the key becomes free after `CLAIM_S`."""
    with suppress(StoreError, TimeoutError):
        async with asyncio.timeout(_RELEASE_S), services.database.connection() as conn:
            await idempotency.release(conn, held)
