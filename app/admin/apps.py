"""The app that a request of the admin API names."""

from app.http.rows.endpoint import Call
from storage.configs.kinds.apps import APPS
from storage.errors import UnknownApp


def require_app(call: Call, app_id: str) -> None:
    """Raise `UnknownApp` if an app does not exist."""
    if not call.services.configs.exists(APPS, app_id):
        raise UnknownApp(app_id)
