"""Opens of emails that the tracking pixel sees. They are kept in memory, and written in batches (§4.15).

An open is not lost while the database is unavailable, unless the queue is full or the process is killed.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

import structlog

from storage.clock import AppClock
from storage.events.outbox import EmailOperation, EventSinks, Happened
from storage.mail.recipients import is_recipient, keys_of
from storage.postgres.database import Connection, Database, Locked
from storage.secrets import Keyring
from streams.metrics import CounterMetric
from streams.tasks import background, pause, stopping
from streams.wire.codec import dumps
from streams.wire.errors import DatabaseError, StoreError, StoreUnavailable
from streams.wire.ids import new_id

log = structlog.get_logger()

MAX_WAITING = 20_000
_BATCH = 500
_GATHER_S = 0.1
_AGAIN_S = 1
_LAST_S = 5
OPENS = CounterMetric("parley_mail_opens", "Requests of tracking pixels by outcome", ["outcome"])


@dataclass(frozen=True, slots=True)
class Open:
    """A request of a tracking pixel. `email`, `mail_id` and `uid` may be forged."""

    email: str
    mail_id: str
    uid: str
    user_agent: str
    ip: str
    machine: bool
    """Whether a program fetched it without a reader."""
    event_id: str = field(default_factory=new_id)
    at: float = field(default_factory=time.monotonic)


class _Mail(NamedTuple):
    """The row of an email."""

    mail_id: str
    app_id: str
    uid: str
    recipient: str


class MailOpens:
    """The opens that are not stored yet. At most `MAX_WAITING` are kept; further ones are counted as dropped."""

    def __init__(self, database: Database, sinks: EventSinks, clock: AppClock, keyring: Keyring) -> None:
        self._database = database
        self._sinks = sinks
        self._clock = clock
        self._keys = keys_of(keyring)
        self._waiting: deque[Open] = deque()
        self._arrived = asyncio.Event()
        self._storing = asyncio.Lock()

    @property
    def waiting(self) -> int:
        """The number of opens that are not stored yet."""
        return len(self._waiting)

    def add(self, opened: Open) -> None:
        """Add an open to the queue. This never waits."""
        if len(self._waiting) >= MAX_WAITING:
            OPENS.add(1, "dropped")
            return
        self._waiting.append(opened)
        self._arrived.set()

    async def run(self) -> None:
        """Store opens until cancelled."""
        while not stopping():
            await self._arrived.wait()
            await pause(_GATHER_S)
            try:
                await self.store_waiting()
            except StoreError as error:
                log.warning("mail_opens.not_stored", waiting=len(self._waiting), error=error.what)
                await pause(_AGAIN_S)

    async def store_waiting(self) -> None:
        """Store all waiting opens in batches. Raises `StoreError`, and keeps opens that are not stored."""
        async with self._storing:
            self._arrived.clear()
            while self._waiting:
                batch = [*islice(self._waiting, _BATCH)]
                try:
                    await self._store(batch)
                except (StoreUnavailable, Locked):
                    self._arrived.set()
                    raise
                except DatabaseError:  # One of them may be the reason.
                    await self._store_singly(batch)
                for _ in batch:
                    self._waiting.popleft()

    async def _store_singly(self, batch: Sequence[Open]) -> None:
        for opened in batch:
            try:
                await self._store([opened])
            except (StoreUnavailable, Locked):
                raise
            except DatabaseError as error:
                log.error("mail_open.lost", mail_id=opened.mail_id, error=error.what)
                OPENS.add(1, "dropped")

    async def _store(self, batch: Sequence[Open]) -> None:
        async with self._database.transaction() as conn:
            found = {mail.mail_id: mail for mail in await _find(conn, batch)}
            seen = [(opened, mail) for opened in batch if (mail := self._mail_of(opened, found)) is not None]
            if seen:
                await _count(conn, seen)
                await self._sinks.report_all(conn, await self._events(conn, seen))
        OPENS.add(len(seen), "reported")
        OPENS.add(len(batch) - len(seen), "unknown")

    def _mail_of(self, opened: Open, found: dict[str, _Mail]) -> _Mail | None:
        """Return the email of an open, if it was sent to the open's address."""
        mail = found.get(opened.mail_id)
        if mail is None or not is_recipient(mail.recipient, opened.email, mail.app_id, keys=self._keys):
            return None
        return mail

    async def _events(self, conn: Connection, seen: Sequence[tuple[Open, _Mail]]) -> list[Happened]:
        """Return the events. If an open does not name the email's user, they name the user with the address."""
        unnamed = [(mail.app_id, opened.email) for opened, mail in seen if opened.uid != mail.uid]
        owners, events = await _owners(conn, unnamed), []
        for opened, mail in seen:
            uid = mail.uid
            if opened.uid != uid:
                uid = owners.get((mail.app_id, opened.email), uid)
            at = self._clock.now(mail.app_id) - timedelta(seconds=time.monotonic() - opened.at)
            events.append(Happened(opened.event_id, mail.app_id, _event(opened, uid), at))
        return events


def _event(opened: Open, uid: str) -> EmailOperation:
    extra = {
        "email": opened.email,
        "user_id": uid,
        "message_id": opened.mail_id,
        "user_agent": opened.user_agent,
        "ip": opened.ip,
        "machine_open": opened.machine,
    }
    return EmailOperation(
        user_id=uid, email=opened.email, status="open", extra=dumps(extra).decode(), message_id=opened.mail_id
    )


# All processes lock the rows in the same order, because they may count opens of the same emails.
_FIND = """
select mail_id, app_id, uid, recipient from mails where mail_id = any($1) and tracked
order by mail_id for no key update
"""


async def _find(conn: Connection, batch: Sequence[Open]) -> list[_Mail]:
    return [_Mail(*row) for row in await conn.fetch(_FIND, list({opened.mail_id for opened in batch}))]


_COUNT = """
update mails set opens = opens + by_readers, machine_opens = machine_opens + by_programs
from (
    select mail_id, count(*) filter (where not machine) as by_readers,
        count(*) filter (where machine) as by_programs
    from unnest($1::text[], $2::boolean[]) as opened (mail_id, machine) group by mail_id
) seen where mails.mail_id = seen.mail_id
"""


async def _count(conn: Connection, seen: Sequence[tuple[Open, _Mail]]) -> None:
    await conn.execute(_COUNT, [mail.mail_id for _, mail in seen], [opened.machine for opened, _ in seen])


_OWNERS = """
select app_id, social_id, uid from identities join unnest($1::text[], $2::text[]) as named (app_id, social_id)
using (app_id, social_id) where platform = 'email'
"""


async def _owners(conn: Connection, named: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the users of addresses, by the app and the address."""
    if not named:
        return {}
    rows = await conn.fetch(_OWNERS, *map(list, zip(*set(named), strict=True)))
    return {(app_id, address): uid for app_id, address, uid in rows}


@asynccontextmanager
async def open_mail_opens(
    database: Database, sinks: EventSinks, clock: AppClock, keyring: Keyring
) -> AsyncIterator[MailOpens]:
    """Store opens during the block. Store the remaining opens at its end, for at most 5 s."""
    opens = MailOpens(database, sinks, clock, keyring)
    async with background(opens.run()):
        yield opens
    with suppress(StoreError, TimeoutError):
        async with asyncio.timeout(_LAST_S):
            await opens.store_waiting()
