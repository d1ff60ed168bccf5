"""The functions of `storage` that requests, lists of the console and jobs call on the tables that grow."""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import asyncpg

from bench.tables.filling import APP
from bench.tables.plans import Explained, Reads
from storage.accounts import identities, logins, sessions, user_history, user_search, users
from storage.accounts.identities import Identity
from storage.assets import entries, quotas
from storage.assets.entries import Entry
from storage.configs.kinds.quota import Quota
from storage.conversations import attempts, conversations, deletion, turn_rows
from storage.conversations.attempts import AttemptRow, StreamAttempts
from storage.conversations.turn_rows import ClosedTurn, NewTurn, TurnOutcome
from storage.events import queue
from storage.events.queue import Sink
from storage.jobs import idempotency, inbox
from storage.jobs.idempotency import RequestKey, StoredAnswer
from storage.jobs.inbox import NewWebhook
from storage.mail import engagement_lists, mails
from storage.operators import audit
from storage.operators.audit import Filters, Origin, Subject
from storage.payments import subscribed
from storage.userdata.retention import rows_before
from streams.wire.ids import new_id, sha256_hex

Caller = Literal["request", "console", "job"]
Sample = Mapping[str, Any]
Run = Callable[[asyncpg.Connection, Sample], Awaitable[Any]]
_PERCENT = 2
_CALLS = 12
"""More than the five calls after which PostgreSQL may plan a statement once for all arguments."""
_QUOTA = Quota(asset="minutes", amount=1, free_per_day=5)
_SINK = Sink(APP, "hook")


@dataclass(slots=True)
class Statement:
    """A function, the rows that it is called for, and how much it may read."""

    table: str
    name: str
    caller: Caller
    run: Run
    bound: int = 120
    """How many pages a call may read, whatever the size of the table."""
    reads: Sequence[Reads] = field(default_factory=list)
    """With a part of the rows, and with all rows."""

    def faults(self) -> list[str]:
        """Return what makes the statement slower as the table grows."""
        last = self.reads[-1]
        found = [f"scans {table}" for table in sorted(last.scanned)]
        if last.most > self.bound:
            found.append(f"reads {last.most:,} pages, more than {self.bound}")
        return found

    def line(self) -> list[str]:
        first, last = self.reads[0], self.reads[-1]
        pages = [f"{first.most:,}", f"{last.most:,}", f"{last.typical_ms:.2f}"]
        return [f"`{self.table}`", self.name, self.caller, *pages, ", ".join(self.faults())]


def _now() -> datetime:
    return datetime.now(UTC)


def _attempt(number: int) -> AttemptRow:
    return AttemptRow(
        number=number, stage="llm", strategy="chat", vendor="openai", outcome="won", message="",
        first_output_ms=420, elapsed_ms=3100, input_unit=1200, output_unit=340, price="0.0012345",
        usage_source="vendor",
    )  # fmt: skip


async def _turn(conn: asyncpg.Connection, row: Sample) -> None:
    """The statements of a turn: its record is opened, and closed with its attempts."""
    stream_id = new_id()
    message = {"role": "user", "content": [{"type": "text", "text": "x" * 80}]}
    turn = NewTurn(APP, row["conversation_id"], row["uid"], [message], stream_id, 600, "process")
    record_id = await turn_rows.open_turn(conn, turn)
    outcome = TurnOutcome("complete", "chat", {**message, "role": "assistant"}, 200, 150, tokens_estimated=False)
    rows = [_attempt(0), _attempt(1)]
    closed = ClosedTurn(APP, row["uid"], row["conversation_id"], record_id, stream_id, outcome, rows)
    await turn_rows.close_turn(conn, closed)


async def _new_conversation(conn: asyncpg.Connection, row: Sample) -> None:
    await _turn(conn, {**row, "conversation_id": new_id()})


async def _add_attempts(conn: asyncpg.Connection, row: Sample) -> None:
    await attempts.add(conn, StreamAttempts(APP, row["uid"], new_id(), [_attempt(0), _attempt(1)], 0))


async def _post(conn: asyncpg.Connection, row: Sample) -> None:
    entry = Entry(f"task:{new_id()}", "consume", "minutes", "consumable", quantity=1)
    await entries.add(conn, APP, row["uid"], entry=entry, now=_now())


async def _receive(conn: asyncpg.Connection, row: Sample) -> None:
    webhook = NewWebhook(APP, "cardpay", "main", new_id(), None, {"a": "b"}, b"x" * 2000)
    await inbox.receive(conn, webhook, now=_now())


async def _answer(conn: asyncpg.Connection, row: Sample) -> None:
    key = RequestKey(APP, sha256_hex(new_id().encode()), sha256_hex(b"input"))
    await idempotency.find(conn, key)
    held = await idempotency.claim(conn, key)
    assert held is not None, "the key is new"
    await idempotency.store(conn, held, answer=StoredAnswer(200, {"content-type": "application/json"}, b"{}"))


async def _change(conn: asyncpg.Connection, row: Sample) -> None:
    subject = Subject(APP, "user", row["name"])
    await audit.record_change(conn, Origin("root"), action="user.export", subject=subject)


async def _deliver(conn: asyncpg.Connection, row: Sample) -> None:
    await queue.retry(conn, _SINK, event_id=row["event_id"], origin=Origin("root"))
    await queue.due_sinks(conn, [_SINK])
    for event in await queue.claim(conn, _SINK, limit=100, for_s=60):
        await queue.failed(conn, event, error="503", retry_in_s=60)


async def _delete(table: str, time: str, conn: asyncpg.Connection, row: Sample) -> None:
    await rows_before(table, time)(conn, APP, before=_now() - timedelta(days=360), limit=100)


async def _dead_sessions(conn: asyncpg.Connection, row: Sample) -> None:
    await logins.delete_dead_sessions(conn, APP, now=_now() - timedelta(days=5000), sliding_s=60, pages=range(100))


async def _old_conversations(conn: asyncpg.Connection, row: Sample) -> None:
    await deletion.delete_expired(conn, APP, before=_now() - timedelta(days=360), limit=20)


async def _records(conn: asyncpg.Connection, row: Sample) -> None:
    await conversations.page(
        conn, APP, conversation_id=row["conversation_id"], newest=4, size=20, max_bytes=1_000_000
    )


async def _history(conn: asyncpg.Connection, row: Sample) -> None:
    await user_history.page(conn, APP, row["uid"], kinds=(), before=None, size=50)


async def _search(conn: asyncpg.Connection, row: Sample) -> None:
    await user_search.search(conn, [APP], text=row["stream_id"], size=20)


async def _changes(filters: Filters, conn: asyncpg.Connection, row: Sample) -> None:
    await audit.entries(conn, filters, before_id=None, limit=50)


async def _stored_webhooks(which: inbox.Filter, conn: asyncpg.Connection, row: Sample) -> None:
    await inbox.listed(conn, which, before=None, size=50)


async def _sent_mails(which: engagement_lists.Filter, conn: asyncpg.Connection, row: Sample) -> None:
    await engagement_lists.mails(conn, which, before=None, size=50)


async def _stored_events(which: queue.Filter, conn: asyncpg.Connection, row: Sample) -> None:
    await queue.listed(conn, which, before=None, size=50)


def statements() -> list[Statement]:
    """Return all of them, each without measurements."""
    return [
        Statement("users", "user", "request", lambda c, r: users.find(c, APP, r["uid"])),
        Statement(
            "identities",
            "login of a known identity",
            "request",
            lambda c, r: identities.user_of(c, Identity(APP, r["platform"], r["social_id"])),
        ),
        Statement("sessions", "session", "request", lambda c, r: sessions.find(c, APP, digest=r["digest"])),
        Statement(
            "sessions", "last use", "request", lambda c, r: sessions.touch(c, APP, digest=r["digest"], now=_now())
        ),
        Statement("sessions", "deletion of dead sessions", "job", _dead_sessions),
        Statement("conversations", "turn", "request", _turn),
        Statement("conversations", "turn of a new conversation", "request", _new_conversation),
        Statement(
            "conversations",
            "list of a user",
            "request",
            lambda c, r: conversations.overview(c, APP, r["uid"], before=None, size=20),
            bound=250,
        ),
        Statement(
            "conversations",
            "conversation",
            "request",
            lambda c, r: conversations.find(c, APP, r["uid"], conversation_id=r["conversation_id"]),
        ),
        Statement("conversations", "page of 20 records", "request", _records),
        Statement("conversations", "deletion of 20 old ones", "job", _old_conversations, bound=2000),
        Statement("attempts", "attempts of a stream", "request", _add_attempts),
        Statement(
            "attempts",
            "attempts of one stream",
            "console",
            lambda c, r: attempts.of_stream(c, APP, stream_id=r["stream_id"]),
        ),
        Statement("attempts", "search for a user by a stream", "console", _search, bound=300),
        Statement("asset_entries", "entry", "request", _post),
        Statement("asset_entries", "entry of an event", "request", lambda c, r: entries.find(c, APP, key=r["key"])),
        Statement(
            "asset_entries",
            "page of a user",
            "console",
            lambda c, r: entries.page(c, APP, r["uid"], before=None, size=50),
        ),
        Statement(
            "asset_entries",
            "units of a user",
            "request",
            lambda c, r: quotas.counts(c, APP, r["uid"], quota=_QUOTA, now=_now()),
        ),
        Statement(
            "asset_entries",
            "whether a user had a trial",
            "request",
            lambda c, r: subscribed.had_trial(c, APP, r["uid"], asset="minutes"),
        ),
        Statement("webhooks", "webhook", "request", _receive),
        Statement("webhooks", "webhook of a job", "job", lambda c, r: inbox.find(c, r["webhook_id"])),
        Statement(
            "webhooks",
            "missed events",
            "job",
            lambda c, r: inbox.stored_events(
                c, APP, source=r["source"], configs=["main"], event_ids=[r["event_id"], new_id()]
            ),
        ),
        *(
            Statement("webhooks", f"list: {name}", "console", partial(_stored_webhooks, inbox.Filter(*which)))
            for name, which in {
                "all": (None, None, None),
                "of an app": (APP, None, None),
                "of another app": ("other", None, None),
                "of a source without any": (None, "postcards", None),
                "failed": (None, None, "failed"),
                "failed of an app": (APP, None, "failed"),
            }.items()
        ),
        Statement("webhooks", "deletion of 100", "job", partial(_delete, "webhooks", "received_at"), bound=1500),
        Statement(
            "mails", "last emails of a user", "console", lambda c, r: mails.newest(c, APP, r["uid"], size=20)
        ),
        Statement(
            "mails",
            "outcome",
            "job",
            lambda c, r: mails.end_attempt(c, r["mail_id"], outcome="sent", now=_now()),
        ),
        *(
            Statement("mails", f"list: {name}", "console", partial(_sent_mails, engagement_lists.Filter(*which)))
            for name, which in {
                "all": (None, None, None),
                "of another app": ("other", None, None),
                "of a strategy without any": (APP, "offers", None),
                "refused": (APP, None, "refused"),
            }.items()
        ),
        Statement("mails", "deletion of 100", "job", partial(_delete, "mails", "created_at"), bound=1500),
        Statement("reported_events", "retry and delivery", "job", _deliver, bound=400),
        *(
            Statement("reported_events", f"list: {name}", "console", partial(_stored_events, queue.Filter(*which)))
            for name, which in {
                "all": (None, None, None),
                "waiting": (None, None, "waiting"),
                "of another sink": (APP, "other", None),
            }.items()
        ),
        Statement("reported_events", "figures", "job", lambda c, _: queue.counts(c)),
        Statement(
            "reported_events",
            "deletion of none",
            "job",
            lambda c, _: queue.delete_expired(
                c, APP, before=_now() - timedelta(days=5000), sinks=["hook"], limit=1000
            ),
        ),
        Statement("audit", "change", "request", _change),
        *(
            Statement("audit", f"list: {name}", "console", partial(_changes, filters))
            for name, filters in {
                "all": Filters(),
                "of a time": Filters(since=_now() - timedelta(days=200), until=_now() - timedelta(days=199)),
                "of an actor without changes": Filters(actor="nobody"),
                "of an action that is rare": Filters(action="withdrawal.settle"),
                "of a user": Filters(app_id=APP, kind="user", name="0" * 32),
            }.items()
        ),
        Statement("audit", "history of a user", "console", _history, bound=1000),
        Statement(
            "audit", "deletion of 100", "job", lambda c, _: audit.delete_expired(c, days=360, limit=100), 1500
        ),
        Statement("idempotency_keys", "request with a key", "request", _answer),
        Statement(
            "idempotency_keys",
            "deletion of 100",
            "job",
            lambda c, _: idempotency.delete_expired(c, limit=100),
            1500,
        ),
    ]


async def measure(conn: asyncpg.Connection, explained: Explained, statement: Statement) -> Reads:
    """Call a function for random rows. What it changes is rolled back."""
    sample = f"{statement.table} tablesample system ({_PERCENT})"
    rows = await conn.fetch(f"select * from {sample} order by random() limit {_CALLS}")  # noqa: S608 - our names
    if not rows:
        rows = await conn.fetch(f"select * from {statement.table} limit {_CALLS}")  # noqa: S608
    reads = Reads()
    for _ in range(_CALLS):
        row = {"uid": "", **dict(random.choice(rows))}  # noqa: S311 - any rows will do
        transaction = conn.transaction()
        await transaction.start()
        await explained.take(Reads())
        await statement.run(conn, row)
        await conn.execute("select")  # PostgreSQL reports a statement when the next one begins.
        await explained.take(reads)
        await transaction.rollback()
    return reads
