"""The areas of the endpoints for operators, one for each role. Each role includes the roles before it."""

from dataclasses import replace

from app.admin.sections import SECTIONS
from app.http.callers.area import Area, Audience
from app.http.callers.caller import Access
from storage.operators.operators import Role

FOR_VIEWERS = Area(
    "admin",
    "Server",
    "Sessions of the console, limits, the last check of the deployment, and what proxies do to streams. "
    "`X-Parley-Version` in responses is the version of the server.",
    access=Access.ADMIN,
    audience=Audience.OPERATORS,
    sections=SECTIONS,
    role=Role.VIEWER,
)
FOR_EDITORS = replace(FOR_VIEWERS, role=Role.EDITOR)
FOR_ADMINS = replace(FOR_VIEWERS, role=Role.ADMIN)
