"""Shared parts of the endpoints of development servers."""

from app.http.callers.area import Area, Audience
from app.http.callers.caller import Access
from app.services import Services
from storage.configs.kinds.apps import APPS
from streams.wire.errors import AppNotFound, listed

DEVELOPMENT = Area(
    "development",
    "Development",
    "Endpoints that only development servers have (`PARLEY_ENV=development`).",
    access=Access.PUBLIC,
    audience=Audience.DEVELOPMENT,
)


def require_app(services: Services, app_id: str) -> str:
    """Return the id of an app that a request names. Raises `AppNotFound`."""
    if not services.configs.exists(APPS, app_id):
        raise AppNotFound(f"app {listed([app_id])} does not exist")
    return app_id
