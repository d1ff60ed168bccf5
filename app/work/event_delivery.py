"""The delivery of events to the sinks of all apps, in a worker process."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter

import structlog
from prometheus_client import Gauge

from app.services import Services
from storage.configs.kinds.events import EVENTS, Events, key_of
from storage.configs.kinds.urls import resolve_url
from storage.configs.rows import ConfigKey
from storage.events import queue as event_queue
from storage.events import streams as event_streams
from storage.events.queue import DueEvent, Sink
from streams.metrics import CounterMetric
from streams.tasks import background, pause, run_all, stopping
from streams.wire.codec import dumps, rfc3339
from streams.wire.errors import ConfigInvalid, ServiceError, StoreError
from vendors.account import Account
from vendors.catalog import Capability
from vendors.sinks.webhook import SinkEvent, SinkWebhook

log = structlog.get_logger()

RETRY_DELAYS_S = (5, 60, 300, 1800, 7200, 18_000, 28_800, 28_800)
"""The waits between the attempts to deliver an event, about a day in total. After the last attempt, the event is
dead."""
_POLL_S = 1
_BATCH = 100
_BATCH_S = 50
_CLAIM_S = 60
"""How long the events of a killed worker wait before another worker takes them."""
_CLEANUP_S = 5
_FAULT_PAUSE_S = 10
_ERROR_CHARACTERS = 500

_EVENTS = Capability[bytes, SinkWebhook]("events").by(SinkWebhook)
DELIVERIES = CounterMetric(
    "parley_event_deliveries", "Attempts to deliver events to sinks by outcome", ["app", "sink", "outcome"]
)
EVENTS_STORED = Gauge("parley_events", "Stored events by status", ["app", "sink", "status"])
EVENTS_OLDEST = Gauge(
    "parley_events_oldest_seconds", "Seconds since the oldest event was due", ["app", "sink", "status"]
)


async def deliver_events(services: Services, *, poll_s: float = _POLL_S, claim_s: float = _CLAIM_S) -> None:
    """Deliver events until cancelled, to each sink independently of the others.

    `poll_s`: how often to look for due events. `claim_s`: how long events are left to a worker that may be dead.
    """
    running: dict[Sink, tuple[background[None], asyncio.Task[None]]] = {}
    try:
        while not stopping():
            for sink in await _due(services):
                if sink not in running or running[sink][1].done():
                    delivery = background(_deliver(services, sink, claim_s=claim_s))
                    running[sink] = delivery, delivery.start()
            await pause(poll_s)
    finally:
        for delivery, _ in running.values():
            await delivery.stop()


async def _due(services: Services) -> list[Sink]:
    configs = services.configs
    named = [Sink(app_id, name) for app_id in configs.apps() for name in configs.names(EVENTS, app_id)]
    sinks = [sink for sink in named if configs.fault(ConfigKey(sink.app_id, EVENTS.name, sink.name)) is None]
    if not sinks:
        return []
    try:
        async with services.database.connection() as conn:
            return await event_queue.due_sinks(conn, sinks)
    except StoreError as error:
        log.warning("events.unavailable", error=error.what)
        return []


async def _deliver(services: Services, sink: Sink, *, claim_s: float) -> None:
    """Deliver the due events of a sink. Failures are logged, and the delivery is tried again after a pause."""
    try:
        while await _deliver_batch(services, sink, claim_s=claim_s) == _BATCH:
            pass
    except Exception as error:  # noqa: BLE001 - it is logged with its traceback
        bound = log.bind(app_id=sink.app_id, sink=sink.name, error=str(error))
        if isinstance(error, StoreError):
            bound.warning("events.not_delivered")
        else:
            bound.error("events.not_sent", exc_info=None if isinstance(error, ServiceError) else error)
        await pause(_FAULT_PAUSE_S)


async def _deliver_batch(services: Services, sink: Sink, *, claim_s: float) -> int:
    """Deliver at most a batch, and return how many events it had."""
    config = services.configs.get(EVENTS, sink.app_id, sink.name).value
    target = _Stream(services, sink, config) if config.stream is not None else _Webhook(services, sink, config)
    if (limit := target.limit) == 0:
        return 0
    async with services.database.transaction() as conn:
        events = await event_queue.claim(conn, sink, limit=limit, for_s=claim_s)
    outcomes = _Outcomes(services, sink, events)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(_BATCH_S, claim_s)):
                await target.deliver(outcomes)
    finally:
        await outcomes.release()
    return len(events)


class _Outcomes:
    """The events of a batch, and the outcomes of their attempts."""

    def __init__(self, services: Services, sink: Sink, events: Sequence[DueEvent]) -> None:
        self.events = events
        self._services = services
        self._sink = sink
        self._open = {event.position: event for event in events}

    async def delivered(self, events: Sequence[DueEvent]) -> None:
        async with self._services.database.connection() as conn:
            await event_queue.delivered(conn, events)
        self._close(events, "delivered")

    async def failed(self, event: DueEvent, error: ServiceError) -> None:
        retries = event.attempts < len(RETRY_DELAYS_S)
        retry_in_s = None
        if retries:
            retry_in_s = max(RETRY_DELAYS_S[event.attempts], min(error.retry_after_s or 0, RETRY_DELAYS_S[-1]))
        text = error.what.replace("\0", " ")[:_ERROR_CHARACTERS]
        async with self._services.database.connection() as conn:
            await event_queue.failed(conn, event, error=text, retry_in_s=retry_in_s)
        self._close([event], "failed" if retries else "dead")
        write = log.warning if retries else log.error
        write(
            "event.failed" if retries else "event.dead",
            app_id=self._sink.app_id,
            sink=self._sink.name,
            event_id=event.event_id,
            attempt=event.attempts + 1,
            error=text,
        )

    async def release(self) -> None:
        """Leave events without an outcome to the next batch or to another worker."""
        if self._open:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(_CLEANUP_S), self._services.database.connection() as conn:
                    await event_queue.release(conn, [*self._open.values()])

    def _close(self, events: Iterable[DueEvent], outcome: str) -> None:
        for event in events:
            del self._open[event.position]
            DELIVERIES.add(1, self._sink.app_id, self._sink.name, outcome)


class _Webhook:
    """A sink that receives each event by a call."""

    def __init__(self, services: Services, sink: Sink, config: Events) -> None:
        url = resolve_url(config.url or "", sandbox_url=services.settings.sandbox_url)
        if not url or config.secret is None:
            raise ConfigInvalid(f"events {sink.name}: url names the sandbox, which does not run")
        account = Account(sink.name, EVENTS.name, url, config.secret, config.concurrency)
        key = ConfigKey(sink.app_id, EVENTS.name, sink.name)
        self._access = services.vendors.open(_EVENTS, account, key=key, limits=config)
        self._key, self._timeout_s = key_of(config.secret), config.timeout_s
        self._slots = asyncio.Semaphore(config.concurrency)

    @property
    def limit(self) -> int:
        """The number of events that may be sent now. A sink that may have recovered gets one."""
        breaker = self._access.gate.breaker
        if breaker.open:
            return 0
        return 1 if breaker.tripped else _BATCH

    async def deliver(self, outcomes: _Outcomes) -> None:
        """Send the events. Events of the same user are sent in their order."""
        by_user = groupby(sorted(outcomes.events, key=attrgetter("uid")), key=attrgetter("uid"))
        await run_all(self._deliver_of_user(outcomes, [*events]) for _, events in by_user)

    async def _deliver_of_user(self, outcomes: _Outcomes, events: Sequence[DueEvent]) -> None:
        for event in events:
            async with self._slots:
                if self._access.gate.breaker.open:  # Its attempt would fail without a call.
                    return
                try:
                    await self._access.call(self._key, partial(_send, body_of(event)), within_s=self._timeout_s)
                except ServiceError as error:
                    await outcomes.failed(event, error)
                else:
                    await outcomes.delivered([event])


async def _send(event: SinkEvent, webhook: SinkWebhook) -> None:
    await webhook.send(event)


class _Stream:
    """A sink that is a Redis Stream. A whole batch is added by one call."""

    limit = _BATCH

    def __init__(self, services: Services, sink: Sink, config: Events) -> None:
        assert config.stream is not None, "the sink is a stream"
        self._append = partial(
            event_streams.append, services.valkey, sink.app_id, stream=config.stream, max_len=config.max_len
        )

    async def deliver(self, outcomes: _Outcomes) -> None:
        bodies = [body_of(event) for event in outcomes.events]
        try:
            await self._append(entries=[{**body.model_dump(), "data": dumps(body.data)} for body in bodies])
        except StoreError as error:
            for event in outcomes.events:
                await outcomes.failed(event, error)
        else:
            await outcomes.delivered(outcomes.events)


async def measure_events(services: Services) -> None:
    """Update the gauges of stored events."""
    async with services.database.connection() as conn:
        found = await event_queue.counts(conn)
    EVENTS_STORED.clear()
    EVENTS_OLDEST.clear()
    for one in found:
        EVENTS_STORED.labels(one.app_id, one.sink, one.status).set(one.count)
        EVENTS_OLDEST.labels(one.app_id, one.sink, one.status).set(one.oldest_s)


def body_of(event: DueEvent) -> SinkEvent:
    return SinkEvent(
        event=event.event,
        id=event.event_id,
        app_id=event.app_id,
        time=rfc3339(event.happened_at),
        data=event.data,
    )
