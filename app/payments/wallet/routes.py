"""Routes of payments by wallet."""

from app.http.callers.area import Area
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Endpoint, alias
from app.payments.subscribing import AlreadySubscribed, TrialUsed
from app.payments.wallet import order_endpoints as orders
from app.payments.wallet import subscription_endpoints as subscriptions
from app.payments.wallet import upgrade_endpoints as upgrades
from streams.wire.errors import BackendUnavailable, ConfigInvalid

AREA = Area("walletpay", "Wallet payments", "Subscriptions and one-off orders that users pay with a wallet.")

_CREATED = Limit("wallets")
_READ = Limit("payment_reads")
_PLATFORM = (ConfigInvalid, BackendUnavailable)
_OF_ORDER = (orders.OrderNotFound, *_PLATFORM)
_OF_SUBSCRIPTION = (subscriptions.SubscriptionNotFound, *_PLATFORM)
_SUB = "/bp/asset/walletpay_sub"
_ORDER = "/bp/asset/walletpay"
_SYNC = Endpoint("GET", f"{_SUB}/{{sub_id}}/sync", subscriptions.sync, AREA, limit=_READ, errors=_OF_SUBSCRIPTION)

WALLET_ROUTES = [
    Endpoint(
        "POST",
        _SUB,
        subscriptions.subscribe,
        AREA,
        limit=_CREATED,
        errors=(AlreadySubscribed, TrialUsed, *_PLATFORM),
    ),
    _SYNC,
    alias(_SYNC, f"{_SUB}/{{sub_id}}"),
    Endpoint("GET", f"{_SUB}/{{sub_id}}/fetch", subscriptions.fetch, AREA, limit=_READ, errors=_OF_SUBSCRIPTION),
    Endpoint(
        "POST",
        f"{_SUB}/{{sub_id}}/upgrade",
        upgrades.upgrade,
        AREA,
        limit=_CREATED,
        errors=(*_OF_SUBSCRIPTION, upgrades.UnsupportedUpgrade, upgrades.UpgradeRefused, AlreadySubscribed),
    ),
    Endpoint(
        "GET", f"{_SUB}/{{sub_id}}/sync_upgrade", upgrades.sync_upgrade, AREA, limit=_READ, errors=_OF_SUBSCRIPTION
    ),
    Endpoint("POST", f"{_ORDER}/create", orders.new_order, AREA, limit=_CREATED, errors=_PLATFORM),
    Endpoint(
        "POST", f"{_ORDER}/capture", orders.capture, AREA, limit=_READ, errors=(*_OF_ORDER, orders.OrderNotApproved)
    ),
    Endpoint("GET", f"{_ORDER}/sync/{{order_id}}", orders.sync_order, AREA, limit=_READ, errors=_OF_ORDER),
    Endpoint("GET", f"{_ORDER}/{{order_id}}/fetch", orders.fetch_order, AREA, limit=_READ, errors=_OF_ORDER),
]
