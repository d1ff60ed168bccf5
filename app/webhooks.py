"""The platforms that call webhooks: one row each. Routes and the job that works on webhooks are derived from it."""

from collections.abc import Sequence

from app.http.webhooks import WebhookSource, webhook_row, worker_of
from app.payments.card_webhooks import CARD_WEBHOOKS
from app.payments.wallet_webhooks import WALLET_WEBHOOKS
from app.withdrawals.webhooks import PAYOUT_WEBHOOKS

SOURCES: Sequence[WebhookSource] = (CARD_WEBHOOKS, WALLET_WEBHOOKS, PAYOUT_WEBHOOKS)

WEBHOOK_ROUTES = [webhook_row(source) for source in SOURCES]
work_webhook = worker_of(SOURCES)
