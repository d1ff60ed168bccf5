"""Strategies of predictions, and the host of a stored prediction."""

from typing import Any
from urllib.parse import quote

from actors.clients.strategies import required_strategy
from actors.clients.vendor_clients import VendorAccess
from app.services import Services
from storage.configs.kinds.predictions import PREDICTIONS, Predictions
from storage.tasks.predictions import Prediction
from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter
from streams.wire.long_integers import loads_exact
from vendors.catalog import MODEL_HOSTS
from vendors.hosts.replicate import NewPrediction, ReplicateHost

MAX_BYTES = 256 * 1024
BODY_BYTES = 320 * 1024
WITHIN_S = 30
"""The time limit of one call of a host."""
WEBHOOKS = "model_host"
_HTTPS = "https://"

Host = VendorAccess[None, ReplicateHost]


def strategy_of(services: Services, app_id: str, name: str) -> Predictions:
    """Return a strategy. Raises `StrategyNotFound`, or `ConfigInvalid` if it cannot be used."""
    return required_strategy(services.configs, PREDICTIONS, app_id, name)


def host_of(services: Services, app_id: str, account: str) -> Host:
    return services.vendors.account(MODEL_HOSTS, app_id, account)


def asked_of(prediction: Prediction) -> NewPrediction:
    """Return the request to the host."""
    return NewPrediction(loads_exact(prediction.body.encode()), prediction.model)


def webhook_url(services: Services, host: Host, app_id: str) -> str | None:
    """Return the URL of our webhook. `None` if the host would refuse it, because it has no TLS.

    Hosts without TLS, such as sandboxes, call any URL.
    """
    public_url = services.settings.public_url
    if not public_url.startswith(_HTTPS) and host.account.base_url.startswith(_HTTPS):
        return None
    return f"{public_url}/bp/webhook/{WEBHOOKS}/{quote(app_id, safe='')}/{quote(host.account.name, safe='')}"


def check_size(field: str, value: Any) -> None:
    if len(dumps(value)) > MAX_BYTES:
        raise InvalidParameter(f"{field} must be at most {MAX_BYTES} bytes of JSON")
