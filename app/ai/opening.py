"""Open a stream: submit the `StreamRequest` of an HTTP request to admission control (§4.17, 4.19)."""

import asyncio
from functools import partial
from typing import Any

from actors.runtime.actor import Actor, Play
from actors.runtime.admission import StreamRequest
from actors.runtime.context import Owner
from app.http.rows.endpoint import REQUEST_CONTEXT, Call, Endpoint
from app.http.rows.idempotency import key_in
from app.http.rows.row_errors import check_event
from storage.accounts.ended_sessions import SessionKey
from storage.conversations.admission import IdempotencyKey, StreamLocation
from streams.wire.codec import dumps
from streams.wire.errors import ServiceError
from streams.wire.ids import sha256_hex
from streams.wire.model import Model


async def open_stream(
    call: Call,
    kind: str,
    play: Play,
    *,
    conversation_id: str | None = None,
    idempotency_key: IdempotencyKey | None = None,
    readable: bool = True,
    seen_running: bool = False,
    durable: bool = False,
) -> Actor | StreamLocation:
    """Admit the stream of a call and start it, as `AdmissionControl.admit` describes."""
    services, context, session_id = call.services, call.request[REQUEST_CONTEXT], call.caller.session_id
    opened = await services.admission_control.admit(
        StreamRequest(
            kind,
            play,
            Owner(call.app_id, call.caller.user),
            call.app_limits,
            request_id=context.request_id,
            arrived=context.arrived,
            waited_s=context.waited_s,
            session=SessionKey(call.app_id, session_id) if session_id else None,
            traceparent=call.request.headers.get("traceparent", "") if services.resources.traces else "",
            conversation_id=conversation_id,
            idempotency_key=idempotency_key,
            readable=readable,
            seen_running=seen_running,
            durable=durable,
        )
    )
    if isinstance(opened, Actor):
        opened.outcome.add_done_callback(partial(_check_outcome, call.endpoint))
    return opened


def _check_outcome(row: Endpoint, outcome: "asyncio.Future[dict[str, Any] | ServiceError]") -> None:
    """Report an `error` event whose error the row does not list."""
    if isinstance(error := outcome.result(), ServiceError):
        check_event(row, error)


def idempotency_key_of(call: Call, parameters: Model) -> IdempotencyKey | None:
    """Return the request's `Idempotency-Key` with a fingerprint of its parameters, or None without the header."""
    key = key_in(call.request)
    if key is None:
        return None
    path = call.endpoint.original.path
    return IdempotencyKey(
        sha256_hex(f"{path} {key}".encode()), sha256_hex(dumps(parameters.model_dump(mode="json")))
    )
