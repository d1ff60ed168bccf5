"""The pages of the reference by the name of their file."""

from collections.abc import Callable, Mapping
from pathlib import Path

from deploy.reference.configs import configs_page
from deploy.reference.errors import errors_page
from deploy.reference.events import events_page
from deploy.reference.roles import roles_page
from deploy.reference.settings import settings_page

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "configs.md": configs_page,
    "errors.md": errors_page,
    "events.md": events_page,
    "roles.md": roles_page,
}
