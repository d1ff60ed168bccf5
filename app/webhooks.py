"""The platforms that call webhooks, and those that list events: one row each, of which routes and jobs are made."""

from collections.abc import Sequence

from app.ai.images.tasks import IMAGE_WEBHOOKS
from app.http.rows.webhooks import WebhookSource, webhook_row
from app.payments.cards.webhooks import CARD_EVENTS, CARD_WEBHOOKS
from app.payments.wallet.webhooks import WALLET_EVENTS, WALLET_WEBHOOKS
from app.platforms.missed_events import EventList, comparer_of, finder_of
from app.predictions.webhooks import MODEL_HOST_WEBHOOKS
from app.withdrawals.webhooks import PAYOUT_EVENTS, PAYOUT_WEBHOOKS

SOURCES: Sequence[WebhookSource] = (
    CARD_WEBHOOKS,
    WALLET_WEBHOOKS,
    PAYOUT_WEBHOOKS,
    MODEL_HOST_WEBHOOKS,
    IMAGE_WEBHOOKS,
)
EVENT_LISTS: Sequence[EventList] = (CARD_EVENTS, WALLET_EVENTS, PAYOUT_EVENTS)

WEBHOOK_ROUTES = [webhook_row(source) for source in SOURCES]
find_missed_events = finder_of(EVENT_LISTS)
compare_events = comparer_of(EVENT_LISTS)
