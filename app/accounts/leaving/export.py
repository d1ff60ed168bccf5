"""Jobs that write the export of a user's data to a file, and delete files that are no longer kept."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from app.app_limits import limits_of_all_apps
from app.services import Services
from storage.conversations.conversations import Record, page
from storage.conversations.speech_files import days_folder
from storage.jobs.jobs import ExportUser, RemoveExpiredExports
from storage.leaderboards import leaderboards
from storage.payments import card_payments, card_subscriptions
from storage.postgres.batches import delete_in_batches
from storage.tasks import image_tasks
from storage.userdata import exports
from storage.userdata.exports import Export, object_key
from streams.wire.codec import dumps, encoded

log = structlog.get_logger()

_FAILURES_AT_ONCE = 1000
_CONVERSATIONS_AT_ONCE = 100
_RECORDS_AT_ONCE = 100
_RECORDS_BYTES = 1024 * 1024
_BATCH_SIZE = 100
_LAST_RECORD = 2**31 - 1


async def export_user(services: Services, job: ExportUser) -> None:
    """Write the file of a requested export, unless it is complete already or another one has replaced it."""
    async with services.database.connection() as conn:
        export = await exports.find(conn, job.app_id, job.uid)
    if export is None or export.export_id != job.export_id:
        # An earlier attempt may have written the file after the export was deleted.
        await services.objects.delete([object_key(job.app_id, job.uid, job.export_id)])
        return
    if export.finished_at is not None:
        return
    async with aclosing(_document(services, export)) as document:
        await services.objects.put(export.object_key, document, content_type="application/json")
    async with services.database.connection() as conn:
        exists = await exports.finish(conn, export, now=services.clock.now(export.app_id))
    if not exists:
        await services.objects.delete([export.object_key])


async def remove_expired_exports(services: Services, job: RemoveExpiredExports) -> None:
    """Delete the exports of each app that were finished more than `export_days` ago."""
    for app in await limits_of_all_apps(services, job):
        before = services.clock.now(app.app_id) - timedelta(days=app.limits.export_days)
        delete = partial(exports.delete_expired, app_id=app.app_id, before=before)
        if removed := await delete_in_batches(services.database, delete, size=_BATCH_SIZE):
            log.info("exports.expired", app_id=app.app_id, removed=removed)


async def _document(services: Services, export: Export) -> AsyncGenerator[bytes]:
    """Yield the JSON of an export in pieces, because it may be large. No connection is held between them."""
    async with services.database.connection() as conn:
        account = await exports.account(conn, export.app_id, export.uid)
        identities = await exports.identities(conn, export.app_id, export.uid)
        sessions = await exports.sessions(conn, export.app_id, export.uid)
        networks = await exports.login_networks(conn, export.app_id, export.uid)
        pending = await exports.pending_emails(conn, export.app_id, export.uid)
        earlier = await exports.earlier_emails(conn, export.app_id, export.uid)
        entries = await exports.asset_entries(conn, export.app_id, export.uid)
        groups = await exports.share_groups(conn, export.app_id, export.uid)
        orders = await exports.wallet_orders(conn, export.app_id, export.uid)
        subscriptions = await exports.wallet_subscriptions(conn, export.app_id, export.uid)
        withdrawals = await exports.withdrawals(conn, export.app_id, export.uid)
        mails = await exports.mails(conn, export.app_id, export.uid)
        predictions = await exports.predictions(conn, export.app_id, export.uid)
        images = await image_tasks.exported(conn, export.app_id, export.uid)
        payments = await card_payments.exported(conn, export.app_id, export.uid)
        scores = await leaderboards.exported(conn, export.app_id, export.uid)
        card_subs = await card_subscriptions.exported(conn, export.app_id, export.uid)
    yield b'{"account":%b,"identities":%b' % (dumps(account), dumps(identities))
    yield b',"pending_emails":%b,"earlier_emails":%b' % (dumps(pending), dumps(earlier))
    yield b',"sessions":%b,"login_networks":%b' % (dumps(sessions), dumps(networks))
    yield b',"asset_entries":%b,"share_groups":%b' % (dumps(entries), dumps(groups))
    yield b',"wallet_orders":%b,"wallet_subscriptions":%b' % (dumps(orders), dumps(subscriptions))
    yield b',"leaderboard_scores":%b' % dumps(scores)
    yield b',"card_payments":%b,"card_subscriptions":%b' % (dumps(payments), dumps(card_subs))
    yield b',"withdrawals":%b,"mails":%b' % (dumps(withdrawals), dumps(mails))
    yield b',"predictions":%b' % dumps(predictions)
    yield b',"image_tasks":%b' % dumps(images)
    yield b',"login_failures":['
    async with aclosing(_login_failures(services, export)) as failures:
        async for piece in failures:
            yield piece
    yield b'],"conversations":['
    after, separator = "", b""
    while found := await _conversations(services, export, after):
        for conversation in found:
            yield separator + dumps(conversation)[:-1] + b',"records":['
            async with aclosing(_records(services, export.app_id, conversation["conversation_id"])) as records:
                async for piece in records:
                    yield piece
            separator, after = b"]},", conversation["conversation_id"]
    yield b'%b],"speech":[' % (b"]}" if after else b"")
    async with aclosing(_speech(services, export)) as keys:
        async for piece in keys:
            yield piece
    yield b"]}"


async def _login_failures(services: Services, export: Export) -> AsyncGenerator[bytes]:
    after, separator = "", b""
    while True:
        async with services.database.connection() as conn:
            found = await exports.login_failures(
                conn, export.app_id, export.uid, after=after, limit=_FAILURES_AT_ONCE
            )
        if not found:
            return
        yield separator + b",".join(map(dumps, found))
        separator, after = b",", found[-1]["failure_id"]


async def _conversations(services: Services, export: Export, after: str) -> list[dict[str, Any]]:
    async with services.database.connection() as conn:
        return await exports.conversations(
            conn, export.app_id, export.uid, after=after, limit=_CONVERSATIONS_AT_ONCE
        )


async def _records(services: Services, app_id: str, conversation_id: str) -> AsyncGenerator[bytes]:
    newest, separator = _LAST_RECORD, b""
    while newest > 0:
        async with services.database.connection() as conn:
            records = await page(
                conn,
                app_id,
                conversation_id=conversation_id,
                newest=newest,
                size=_RECORDS_AT_ONCE,
                max_bytes=_RECORDS_BYTES,
            )
        if not records:
            return
        yield separator + b",".join(map(_record, records))
        separator, newest = b",", records[-1].record_id - 1


def _record(record: Record) -> bytes:
    return dumps(
        {
            "record_id": record.record_id,
            "status": record.status,
            "strategy": record.strategy,
            "created_at": record.created_at,
            "updated_at": record.updated_at,
            "content": encoded(record.content),
        }
    )


async def _speech(services: Services, export: Export) -> AsyncGenerator[bytes]:
    """Yield the keys of the user's stored audio of text-to-speech streams, a day at a time."""
    separator = b""
    for folder in sorted(await services.objects.folders(days_folder(export.app_id))):
        if keys := await services.objects.keys(f"{folder}{export.uid}/"):
            yield separator + dumps(sorted(keys))[1:-1]
            separator = b","
