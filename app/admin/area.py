"""What the endpoints of operators share."""

from app.http.area import Area
from app.http.caller import Access

ADMIN = Area(
    "admin",
    "Administration",
    "For the operator: running streams, jobs and named configs. All revisions of configs are kept.",
    access=Access.ADMIN,
)
