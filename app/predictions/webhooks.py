"""Webhooks of model hosts (§4.16). Each is a hint that makes the job of its prediction read it immediately."""

import time

import structlog

from app.http.rows.webhooks import (
    Delivery,
    InvalidSignature,
    PlatformNotFound,
    Verified,
    WebhookSource,
    WebhookUnverified,
    platform_config,
)
from app.predictions.strategies import WEBHOOKS, Host, host_of
from app.services import Services
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.jobs.inbox import Webhook
from storage.tasks import predictions
from streams.wire.codec import dumps, loads
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import sha256_hex
from vendors.errors import Garbled
from vendors.hosts.replicate_signature import is_signed, key_bytes
from vendors.http.fetched import Fetched
from vendors.http.kept import Kept
from vendors.objects import PartialObject
from vendors.sinks.webhook import ID, SIGNATURE, TIMESTAMP

log = structlog.get_logger()

_KEPT_S = 300
"""A key is fetched again after this time, because the operator may replace it at the host."""
_KEYS: Kept[Fetched[bytes]] = Kept(Fetched, most=1000)
_WITHIN_S = 8


class _Reported(PartialObject):
    id: str | None = None


def _without_texts(body: bytes) -> bytes:
    """Return the body without the texts of users that a prediction contains."""
    try:
        reported = _Reported.model_validate(loads(body))
    except ValueError:
        reported = _Reported()
    return dumps(reported.model_dump())


async def _verify(services: Services, delivery: Delivery) -> Verified:
    platform_config(services, VENDOR_ACCOUNTS, delivery)
    try:
        host = host_of(services, delivery.app_id, delivery.config)
    except ConfigInvalid:
        raise PlatformNotFound(delivery.config) from None
    delivery_id = delivery.headers.get(ID, "")
    signed = is_signed(
        await _key(host),
        delivery.body,
        delivery_id=delivery_id,
        timestamp=delivery.headers.get(TIMESTAMP, ""),
        signatures=delivery.headers.get(SIGNATURE, ""),
        now=time.time(),
    )
    if not signed:
        raise InvalidSignature
    return Verified(delivery_id=delivery_id)


async def _key(host: Host) -> bytes:
    """Return the key of the account's webhooks, which the host publishes."""
    secret = host.account.api_key.get_secret_value() if host.account.api_key else ""
    period = str(int(time.monotonic() // _KEPT_S))
    entry = _KEYS.of(host.http, host.account.base_url, sha256_hex(secret.encode()), period)

    async def fetch() -> bytes:
        key = await host.call(None, lambda client: client.webhook_key(), within_s=_WITHIN_S)
        try:
            return key_bytes(key)
        except ValueError as error:
            raise Garbled(host.platform, f"sent a webhook key that {error}") from None

    if entry.value is None:
        await entry.fetch(fetch)
    if entry.value is None:
        raise WebhookUnverified
    return entry.value


async def _work(services: Services, webhook: Webhook) -> None:
    """Make the job of the prediction due now. The job of a prediction that is not stored yet polls it anyway."""
    app_id, account = webhook.state.app_id, webhook.state.config
    reported = _Reported.model_validate(loads(webhook.body))
    if reported.id is None:  # The host has signed it, and the prediction is polled anyway.
        log.warning("prediction.webhook_unreadable", app_id=app_id, account=account)
        return
    async with services.database.transaction() as conn:
        found = await predictions.find_by_host(conn, app_id, account=account, host_id=reported.id)
        if found is not None and found.ended_at is None and not found.is_awaited:
            await predictions.follow_soon(conn, found)


MODEL_HOST_WEBHOOKS = WebhookSource(
    WEBHOOKS,
    "Receive the ends of predictions from a model host.",
    _verify,
    _work,
    headers=(ID,),
    stored=_without_texts,
)
