"""Sends a test event to a sink that need not be stored."""

import time
from functools import partial

from app.http.rows.endpoint import Call
from storage.configs.kinds.events import EVENTS, Events, key_of
from storage.configs.kinds.urls import resolve_url
from storage.events import streams as event_streams
from streams.wire.codec import dumps, rfc3339
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import new_id
from vendors.account import Account
from vendors.catalog import Capability
from vendors.sinks.webhook import SinkEvent, SinkWebhook

_EVENTS = Capability[bytes, SinkWebhook]("events").by(SinkWebhook)
_TEST = "test"
"""The name of the event. No other event has it."""


async def try_sink(call: Call, app_id: str, name: str, config: Events, text: str) -> int:
    """Send an event with `text` in its data. Return the milliseconds until the sink had accepted it.

    Raises `VendorError` or `StoreError` if it has not.
    """
    now = call.services.clock.now(app_id)
    event = SinkEvent(event=_TEST, id=new_id(), app_id=app_id, time=rfc3339(now), data={"text": text})
    began = time.monotonic()
    if config.stream is not None:
        entry = {**event.model_dump(), "data": dumps(event.data)}
        await event_streams.append(
            call.services.valkey, app_id, stream=config.stream, max_len=config.max_len, entries=[entry]
        )
    else:
        await _post(call, name, config, event)
    return round((time.monotonic() - began) * 1000)


async def _post(call: Call, name: str, config: Events, event: SinkEvent) -> None:
    url = resolve_url(config.url or "", sandbox_url=call.services.settings.sandbox_url)
    if not url or config.secret is None:
        raise ConfigInvalid(f"events {name}: url names the sandbox, which does not run")
    account = Account(name, EVENTS.name, url, config.secret, config.concurrency)
    access = call.services.vendors.open_draft(_EVENTS, account, limits=config)
    await access.call(key_of(config.secret), partial(_send, event), within_s=config.timeout_s)


async def _send(event: SinkEvent, webhook: SinkWebhook) -> None:
    await webhook.send(event)
