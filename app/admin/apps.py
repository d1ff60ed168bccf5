"""The app that a request of the admin API names, and its currency."""

from app.http.rows.endpoint import Call
from storage.configs.kinds.apps import APPS
from storage.configs.store import ConfigStore
from storage.errors import UnknownApp
from streams.wire.errors import ConfigInvalid


def require_app(call: Call, app_id: str) -> None:
    """Raise `UnknownApp` if an app does not exist."""
    if not call.services.configs.exists(APPS, app_id):
        raise UnknownApp(app_id)


def currency_of(configs: ConfigStore, app_id: str) -> str:
    """Return the currency of an app, or an empty text if its config cannot be used."""
    try:
        return configs.singleton(APPS, app_id).currency
    except ConfigInvalid:
        return ""
