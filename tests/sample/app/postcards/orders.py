"""The order of a postcard at its printer, and the printer's webhook when it is posted."""

import hashlib
import hmac

from app.http.rows.webhooks import Delivery, InvalidSignature, Verified, WebhookSource, platform_config
from app.services import Services
from storage import postcards
from storage.configs.kinds.postcards import POSTCARDS
from storage.jobs.inbox import Webhook
from storage.postcards import OrderPostcard
from streams.wire.model import Model
from vendors.catalog import POSTCARD_PRINTERS

_WITHIN_S = 30


class _Posted(Model):
    id: str
    reference: str


async def order_postcard(services: Services, job: OrderPostcard) -> None:
    """Order a postcard, unless it is ordered already. The printer recognizes a repeated call by its id."""
    async with services.database.connection() as conn:
        postcard = await postcards.find(conn, job.app_id, postcard_id=job.postcard_id)
    if postcard is None or postcard.order_id is not None:
        return
    config = services.configs.required(POSTCARDS, job.app_id, postcard.design).value
    printer = services.vendors.account(POSTCARD_PRINTERS, job.app_id, config.account)
    order_id = await printer.call(
        config.paper, lambda acme: acme.order(job.postcard_id, text=postcard.text), within_s=_WITHIN_S
    )
    async with services.database.connection() as conn:
        await postcards.set_ordered(conn, job.app_id, postcard_id=job.postcard_id, order_id=order_id)


async def _verify(services: Services, delivery: Delivery) -> Verified:
    key = platform_config(services, POSTCARDS, delivery).webhook_key.get_secret_value()
    signature = hmac.new(key.encode(), delivery.body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(signature.encode(), delivery.headers.get("X-Acme-Signature", "").encode()):
        raise InvalidSignature
    return Verified(event_id=_Posted.read(delivery.body).id)


async def _work(services: Services, webhook: Webhook) -> None:
    app_id = webhook.state.app_id
    posted = _Posted.read(webhook.body)
    async with services.database.connection() as conn:
        await postcards.set_posted(conn, app_id, postcard_id=posted.reference, now=services.clock.now(app_id))


POSTCARD_WEBHOOKS = WebhookSource("postcards", "Receive notifications of posted postcards.", _verify, _work)
