"""The areas of the endpoints for operators, one for each role. Each role includes the roles before it."""

from dataclasses import replace

from app.http.callers.area import Area
from app.http.callers.caller import Access
from storage.operators.operators import Role

FOR_VIEWERS = Area(
    "admin",
    "Administration",
    "Running streams, jobs, webhooks, events, addresses without emails, failed logins, users' assets, withdrawals, "
    "exports of users' data, receipts of deactivated users, vendor platforms, named configs, operators and the "
    "audit log. All revisions of configs are kept. `X-Parley-Version` in responses is the version of the server.",
    access=Access.ADMIN,
    role=Role.VIEWER,
)
FOR_EDITORS = replace(FOR_VIEWERS, role=Role.EDITOR)
FOR_ADMINS = replace(FOR_VIEWERS, role=Role.ADMIN)
