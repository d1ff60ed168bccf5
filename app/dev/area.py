"""What the endpoints of development servers share."""

from app.http.area import Area
from app.http.caller import Access

DEVELOPMENT = Area(
    "development",
    "Development",
    "Endpoints that only development servers have (`PARLEY_ENV=development`).",
    access=Access.PUBLIC,
)
