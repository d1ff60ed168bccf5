"""Whether the page to try out an app is available: a rule that its page and its list of strategies share."""

from contextlib import suppress

from app.services import Services
from storage.configs.kinds.apps import APPS
from streams.wire.errors import ConfigInvalid


def playground_shown(services: Services, app_id: str) -> bool:
    """Return whether the talk page is available for the app. Without a setting it is only in development."""
    configs = services.configs
    if not configs.exists(APPS, app_id):
        return False
    chosen = None
    with suppress(ConfigInvalid):
        chosen = configs.singleton(APPS, app_id).playground
    return services.settings.development if chosen is None else chosen
