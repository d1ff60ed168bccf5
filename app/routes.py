"""The route table: one row per endpoint. Documentation, authentication and 405 responses are derived from it."""

from app.accounts.email.pages import ACCOUNT_PAGE_ROUTES
from app.accounts.routes import ACCOUNT_ROUTES
from app.admin.audit import AUDIT_ROUTES
from app.admin.configs.configs import CONFIG_ROUTES
from app.admin.configs.references import REFERENCE_ROUTES
from app.admin.console_sessions import SESSION_ROUTES
from app.admin.conversations import CONVERSATION_ROUTES
from app.admin.doctor import DOCTOR_ROUTES
from app.admin.engagement.engagement import ENGAGEMENT_ROUTES
from app.admin.engagement.leaderboards import ADMIN_BOARD_ROUTES
from app.admin.engagement.suppressions import SUPPRESSION_ROUTES
from app.admin.events import ADMIN_EVENT_ROUTES
from app.admin.jobs import JOB_ROUTES
from app.admin.limits import LIMIT_ROUTES
from app.admin.money.costs import COST_ROUTES
from app.admin.money.ledger import LEDGER_ROUTES
from app.admin.money.mismatches import MISMATCH_ROUTES
from app.admin.money.orders import ORDER_ROUTES
from app.admin.money.platforms import PLATFORM_ROUTES
from app.admin.money.reversals import REVERSAL_ROUTES
from app.admin.money.sales import SALES_ROUTES
from app.admin.money.withdrawals import ADMIN_WITHDRAWAL_ROUTES
from app.admin.operators import OPERATOR_ROUTES
from app.admin.overview import OVERVIEW_ROUTES
from app.admin.probe import PROBE_ROUTES
from app.admin.streams.ended import ENDED_ROUTES
from app.admin.streams.live import LIVE_ROUTES
from app.admin.streams.stream import STREAM_ROUTES
from app.admin.users.actions import USER_ACTION_ROUTES
from app.admin.users.assets import ADMIN_ASSET_ROUTES
from app.admin.users.bans import USER_BAN_ROUTES
from app.admin.users.exports import EXPORT_ROUTES
from app.admin.users.history import USER_HISTORY_ROUTES
from app.admin.users.login_failures import LOGIN_FAILURE_ROUTES
from app.admin.users.orders import USER_ORDER_ROUTES
from app.admin.users.receipts import RECEIPT_ROUTES
from app.admin.users.search import USER_SEARCH_ROUTES
from app.admin.users.streams import USER_STREAM_ROUTES
from app.admin.webhooks import admin_webhook_routes
from app.ai.routes import AI_ROUTES, IMAGE_ROUTES
from app.assets.routes import ASSET_ROUTES
from app.dev.accounts import DEV_ACCOUNT_ROUTES
from app.dev.clock import CLOCK_ROUTES
from app.dev.console import CONSOLE_LINK_ROUTES
from app.dev.mail import MAIL_ROUTES
from app.dev.payments import DEV_PAYMENT_ROUTES
from app.dev.sms import SMS_ROUTES
from app.geo.routes import GEO_ROUTES
from app.http.callers.area import Area, Audience
from app.http.callers.caller import Access
from app.http.request.large_responses import LARGE_RESPONSE_ERRORS
from app.http.rows.endpoint import Endpoint
from app.http.rows.health import HEALTH, METRICS, READINESS, healthz, metrics, readyz
from app.leaderboards.routes import LEADERBOARD_ROUTES
from app.mail.routes import MAIL_HUB_ROUTES
from app.pages.console import CONSOLE_PAGE_ROUTES
from app.pages.developers import DEVELOPER_PAGE_ROUTES
from app.pages.files import FILE_ROUTES
from app.pages.guides import GUIDE_ROUTES
from app.pages.reference import docs_routes
from app.pages.talk import TALK_ROUTES
from app.payments.cards.routes import CARD_ROUTES
from app.payments.wallet.routes import WALLET_ROUTES
from app.predictions.routes import PREDICTION_ROUTES
from app.refunds.endpoints import REFUND_ROUTES
from app.settings import Settings
from app.trials.endpoints import TRIAL_ROUTES
from app.webhooks import SOURCES, WEBHOOK_ROUTES
from app.withdrawals.routes import WITHDRAWAL_ROUTES

OPERATIONS = Area(
    "operations",
    "Operations",
    "Health checks and metrics, for monitoring.",
    access=Access.PUBLIC,
    audience=Audience.OPERATORS,
    access_log=False,
)

METRICS_ROUTES = [Endpoint("GET", "/metrics", metrics, OPERATIONS, errors=LARGE_RESPONSE_ERRORS, docs=METRICS)]

OPERATIONS_ROUTES = [
    *(Endpoint(method, "/healthz", healthz, OPERATIONS, docs=HEALTH) for method in ("GET", "HEAD")),
    *(Endpoint(method, "/readyz", readyz, OPERATIONS, docs=READINESS) for method in ("GET", "HEAD")),
    *METRICS_ROUTES,
]

DEVELOPMENT_ROUTES = [
    *CLOCK_ROUTES,
    *MAIL_ROUTES,
    *SMS_ROUTES,
    *DEV_ACCOUNT_ROUTES,
    *DEV_PAYMENT_ROUTES,
    *CONSOLE_LINK_ROUTES,
    *DEVELOPER_PAGE_ROUTES,
    *GUIDE_ROUTES,
]
"""The rows that only development servers have."""

CONSOLE_ROUTES = [*SESSION_ROUTES, *CONSOLE_PAGE_ROUTES]

INTERFACE: list[Endpoint] = [
    *AI_ROUTES,
    *ACCOUNT_ROUTES,
    *ACCOUNT_PAGE_ROUTES,
    *IMAGE_ROUTES,
    *PREDICTION_ROUTES,
    *ASSET_ROUTES,
    *CARD_ROUTES,
    *WALLET_ROUTES,
    *WITHDRAWAL_ROUTES,
    *LEADERBOARD_ROUTES,
    *GEO_ROUTES,
    *MAIL_HUB_ROUTES,
    *CONFIG_ROUTES,
    *REFERENCE_ROUTES,
    *TRIAL_ROUTES,
    *OVERVIEW_ROUTES,
    *PLATFORM_ROUTES,
    *LIVE_ROUTES,
    *STREAM_ROUTES,
    *ENDED_ROUTES,
    *JOB_ROUTES,
    *LIMIT_ROUTES,
    *DOCTOR_ROUTES,
    *PROBE_ROUTES,
    *admin_webhook_routes([source.name for source in SOURCES]),
    *ADMIN_EVENT_ROUTES,
    *SUPPRESSION_ROUTES,
    *LOGIN_FAILURE_ROUTES,
    *ADMIN_ASSET_ROUTES,
    *ADMIN_BOARD_ROUTES,
    *MISMATCH_ROUTES,
    *ADMIN_WITHDRAWAL_ROUTES,
    *OPERATOR_ROUTES,
    *AUDIT_ROUTES,
    *EXPORT_ROUTES,
    *RECEIPT_ROUTES,
    *USER_SEARCH_ROUTES,
    *USER_HISTORY_ROUTES,
    *USER_ORDER_ROUTES,
    *REFUND_ROUTES,
    *USER_ACTION_ROUTES,
    *USER_BAN_ROUTES,
    *USER_STREAM_ROUTES,
    *CONVERSATION_ROUTES,
    *ORDER_ROUTES,
    *REVERSAL_ROUTES,
    *SALES_ROUTES,
    *LEDGER_ROUTES,
    *COST_ROUTES,
    *ENGAGEMENT_ROUTES,
    *WEBHOOK_ROUTES,
    *FILE_ROUTES,
    *OPERATIONS_ROUTES,
    *TALK_ROUTES,
    *CONSOLE_ROUTES,
    *DEVELOPMENT_ROUTES,
]
"""The rows in the order of the API reference, whose groups follow from the areas."""

DOCS_ROUTES = docs_routes(INTERFACE)
ROUTES: list[Endpoint] = [*INTERFACE, *DOCS_ROUTES]
METRICS_PORT_ROUTES = [*OPERATIONS_ROUTES, *DOCS_ROUTES]
"""The rows of the metrics port. It has no connection limits, so it serves nothing else."""


def public_routes(settings: Settings) -> list[Endpoint]:
    """Return the rows for the public port. `/metrics` and the reference are included if the settings say so."""
    hidden: list[Endpoint] = [] if settings.development else list(DEVELOPMENT_ROUTES)
    if not settings.shows_console:
        hidden += CONSOLE_ROUTES
    if not settings.shows_metrics:
        hidden += METRICS_ROUTES
    if not settings.shows_docs:
        hidden += DOCS_ROUTES
    return [row for row in ROUTES if row not in hidden]
