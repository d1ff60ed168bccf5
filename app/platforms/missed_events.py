"""Finds events of payment platforms that no webhook has delivered, stores them like webhooks, and reports them."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.platforms.jobs import enqueue_for_configs, read_or_log
from app.services import Services
from storage.assets.entries import Channel
from storage.configs.kinds.base import ConfigKind
from storage.configs.rows import ConfigKey
from storage.jobs import inbox
from storage.jobs.inbox import NewWebhook, Webhook
from storage.payments import mismatches, missed_events
from storage.payments.missed_events import CompareEvents, FindMissedEvents
from streams.metrics import CounterMetric
from vendors.objects import Unreadable

FOUND = CounterMetric(
    "parley_events_missed", "Events of payment platforms that no webhook has delivered", ["platform", "app"]
)
_FIRST = timedelta(days=3)
"""How far back events are compared at first."""
_GRACE = timedelta(minutes=2)
"""Younger events may still be on their way."""
_OVERLAP = timedelta(hours=1)
"""Events may be listed later than they happen."""
_MISSED = "missed"
"""Header of stored events that no webhook has delivered."""


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """An event in the list of a platform. `body` is what its webhook contains."""

    id: str
    type: str
    at: datetime | None
    body: bytes
    fault: str = ""
    """Why it cannot be read. Empty: it can."""


@dataclass(frozen=True, slots=True)
class EventList:
    """The events that a platform lists for each config of a kind. The webhook source has the kind's name."""

    kind: ConfigKind[Any]
    relevant: tuple[str, ...]
    """The beginnings of the types of events that must not be missed."""
    pages: Callable[[Services, ConfigKey, datetime, datetime], AsyncGenerator[Sequence[ListedEvent]]]
    """Yields the events of a config between two times, page by page. Raises `ConfigInvalid` or `VendorError`."""
    config_of: Callable[[Services, ConfigKey, bytes], Awaitable[str | None]]
    """Returns which config of the app has made the object of an event that a config has listed. `None`: the object
    is not one of the app's. Raises as `pages` does."""


def unreadable_event(event: Unreadable) -> ListedEvent:
    return ListedEvent(event.id, "", None, b"", event.fault)


def channel_of(webhook: Webhook) -> Channel:
    """Return the channel of a stored webhook: a webhook, or the comparison of events."""
    return "reconciliation" if _MISSED in webhook.headers else "webhook"


def finder_of(lists: Sequence[EventList]) -> Callable[[Services, FindMissedEvents], Awaitable[None]]:
    """Return the handler that stores one job for each config."""

    async def find(services: Services, _: FindMissedEvents) -> None:
        await enqueue_for_configs(
            services,
            [event_list.kind for event_list in lists],
            lambda key: CompareEvents(app_id=key.app_id, kind=key.kind, config=key.name),
        )

    return find


def comparer_of(lists: Sequence[EventList]) -> Callable[[Services, CompareEvents], Awaitable[None]]:
    """Return the handler of the job of one config. A failure is logged, and the next job compares again."""
    by_kind = {event_list.kind.name: event_list for event_list in lists}

    async def compare(services: Services, job: CompareEvents) -> None:
        key = ConfigKey(job.app_id, job.kind, job.config)
        await read_or_log(_compare(services, by_kind[job.kind], key), key)

    return compare


async def _compare(services: Services, events: EventList, key: ConfigKey) -> None:
    """Store the events since the last comparison that are not in the inbox. Jobs process them."""
    until = services.clock.now(key.app_id) - _GRACE
    async with services.database.connection() as conn:
        last = await missed_events.compared_until(conn, key)
    since = until - _FIRST if last is None else min(last, until) - _OVERLAP
    async with aclosing(events.pages(services, key, since, until)) as pages:
        async for page in pages:
            found = [
                event
                for event in page
                if not event.fault
                and event.type.startswith(events.relevant)
                and (event.at is None or event.at <= until)
            ]
            await _store_missed(services, events, key, found)
            if unreadable := [event for event in page if event.fault]:
                await _report_unreadable(services, key, unreadable)
    async with services.database.transaction() as conn:
        await missed_events.set_compared(conn, key, until=until)
        await missed_events.forget_foreign(conn, key, before=until - 2 * _OVERLAP)


async def _store_missed(
    services: Services, event_list: EventList, key: ConfigKey, events: Sequence[ListedEvent]
) -> None:
    """Store the events about objects of the config that are not stored yet.

    Other configs, apps and programs may use the same account of the platform, which lists the events of them all.
    An event that another config of the app has received is not missed, because each applies the events of all.
    """
    configs, ids = services.configs.names(event_list.kind, key.app_id), [event.id for event in events]
    async with services.database.connection() as conn:
        known = await inbox.stored_events(conn, key.app_id, source=key.kind, configs=configs, event_ids=ids)
        known |= await missed_events.foreign(conn, key, event_ids=ids)
    unknown = [event for event in events if event.id not in known]
    missed = [event for event in unknown if await _is_of(services, event_list, key, event)]
    now = services.clock.now(key.app_id)
    async with services.database.transaction() as conn:
        for event in missed:
            new = NewWebhook(key.app_id, key.kind, key.name, event.id, None, {_MISSED: "true"}, event.body)
            if await inbox.receive(conn, new, now=now):
                await mismatches.add(
                    conn, key.app_id,
                    platform=key.kind, kind="missed_event", subject=event.id, detail=event.type, now=now,
                )  # fmt: skip
                FOUND.add(1, key.kind, key.app_id)


async def _report_unreadable(services: Services, key: ConfigKey, events: Sequence[ListedEvent]) -> None:
    """Report events of which nobody knows what they change. They are listed again, and reported once."""
    now = services.clock.now(key.app_id)
    async with services.database.transaction() as conn:
        for event in events:
            await mismatches.add_once(
                conn, key.app_id,
                platform=key.kind, kind="unreadable_event", subject=event.id, detail=event.fault, now=now,
            )  # fmt: skip


async def _is_of(services: Services, event_list: EventList, key: ConfigKey, event: ListedEvent) -> bool:
    """Return whether an event is about an object of the config.

    One that is not is remembered, because it is listed several times, and to find this out may take calls.
    """
    if await event_list.config_of(services, key, event.body) == key.name:
        return True
    at = event.at or services.clock.now(key.app_id)
    async with services.database.connection() as conn:
        await missed_events.add_foreign(conn, key, event_id=event.id, at=at)
    return False
