"""Calls by platforms: each is verified and stored before it is answered, and a job processes it later."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, RawBody
from app.services import Services
from storage.configs.kinds.base import ConfigKind, ConfigModel
from storage.errors import ConfigNotFound
from storage.jobs import inbox
from storage.jobs.inbox import NewWebhook, Webhook
from streams.metrics import CounterMetric
from streams.wire.errors import InvalidParameter, ItemNotFound, ServiceError, StoreError, Unavailable, listed
from streams.wire.model import Model

MAX_BYTES = 256 * 1024
_VERIFY_S = 10
_ID_CHARACTERS = 255

WEBHOOKS = Area(
    "webhooks",
    "Calls by platforms",
    "Notifications of payment platforms and model hosts.",
    access=Access.WEBHOOK,
)
RECEIVED = CounterMetric("parley_webhooks", "Received webhooks by source and outcome", ["source", "outcome"])


class InvalidSignature(InvalidParameter):
    """The signature of the webhook is missing or wrong."""

    def __init__(self) -> None:
        super().__init__("the signature is missing or wrong")


class PlatformNotFound(ItemNotFound):
    """The app has no config of this platform with the name `config`."""

    def __init__(self, config: str) -> None:
        super().__init__(f"config {listed([config])} of this platform does not exist")


class WebhookUnverified(Unavailable):
    """The webhook cannot be verified at the moment."""

    def __init__(self, what: str = "the webhook could not be verified in time") -> None:
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A call by a platform, not verified yet. `config` is the name of the config that its path names."""

    app_id: str
    config: str
    headers: Mapping[str, str]
    """All headers, by case-insensitive name."""
    body: bytes


def platform_config(services: Services, kind: ConfigKind[ConfigModel], delivery: Delivery) -> ConfigModel:
    """Return the config that the path names. Raises `PlatformNotFound`, or `ConfigInvalid` if it cannot be used."""
    try:
        return services.configs.get(kind, delivery.app_id, delivery.config).value
    except ConfigNotFound:
        raise PlatformNotFound(delivery.config) from None


@dataclass(frozen=True, slots=True)
class Verified:
    """The ids of a verified delivery.

    If a webhook with the same event id or delivery id is already stored, the delivery is a repeat: it is answered
    and not processed again.
    """

    event_id: str | None = None
    delivery_id: str | None = None


@dataclass(frozen=True, slots=True)
class WebhookSource:
    """A platform that calls `POST /bp/webhook/{name}/{app_id}/{config}`."""

    name: str
    description: str
    """The purpose of its calls, for the API reference."""
    verify: Callable[[Services, Delivery], Awaitable[Verified]]
    """Checks the signature. Raises `InvalidSignature`, `PlatformNotFound`, `WebhookUnverified` or another
    `InvalidParameter` if nothing is to be stored."""
    work: Callable[[Services, Webhook], Awaitable[None]]
    """Processes a stored webhook. It may be called more than once for the same webhook, and in any order. After an
    exception it is called again, as `WorkWebhook` says."""
    headers: Sequence[str] = ()
    """Names of the headers that are stored."""
    stored: Callable[[bytes], bytes] = bytes
    """Returns what is stored of a verified body: by default, all of it. Operators can read it."""


class WebhookPath(Model):
    config: str
    """The config of the platform."""


def webhook_row(source: WebhookSource) -> Endpoint:
    """Return the row of the route table that receives the webhooks of `source`."""

    async def receive(call: Call, path: Path[WebhookPath], raw: RawBody) -> None:
        await _receive(source, call.services, Delivery(call.app_id, path.config, call.request.headers, raw))

    receive.__name__ = f"receive_{source.name}"  # The operation id in the API reference.
    receive.__doc__ = source.description
    return Endpoint(
        "POST",
        f"/bp/webhook/{source.name}/{{app_id}}/{{config}}",
        receive,
        WEBHOOKS,
        body_bytes=MAX_BYTES,
        errors=(InvalidSignature, PlatformNotFound, WebhookUnverified),
    )


async def _receive(source: WebhookSource, services: Services, delivery: Delivery) -> None:
    outcome = "failed"
    try:
        verified = await _verify(source, services, delivery)
        new = NewWebhook(
            app_id=delivery.app_id,
            source=source.name,
            config=delivery.config,
            event_id=_validate_id(verified.event_id),
            delivery_id=_validate_id(verified.delivery_id),
            headers={name: _text(delivery.headers[name]) for name in source.headers if name in delivery.headers},
            body=source.stored(delivery.body),
        )
        async with services.database.transaction() as conn:
            is_new = await inbox.receive(conn, new, now=services.clock.now(new.app_id))
        outcome = "stored" if is_new else "repeated"
    except (StoreError, Unavailable):
        raise
    except ServiceError:
        outcome = "refused"
        raise
    finally:
        RECEIVED.add(1, source.name, outcome)


async def _verify(source: WebhookSource, services: Services, delivery: Delivery) -> Verified:
    try:
        async with asyncio.timeout(_VERIFY_S):
            return await source.verify(services, delivery)
    except TimeoutError:
        raise WebhookUnverified from None


def _validate_id(text: str | None) -> str | None:
    if text is not None and (not 1 <= len(text) <= _ID_CHARACTERS or not text.isprintable()):
        raise InvalidParameter(f"the id of the event must be 1 to {_ID_CHARACTERS} printable characters")
    return text


def _text(header: str) -> str:
    """Return the value of a header without bytes that are not UTF-8."""
    return header.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
