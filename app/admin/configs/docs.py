"""Documentation of the config endpoints for the reference page."""

from app.http.rows.docs import Docs, OtherResponse

_HEADERS = {
    "If-Match": "The revision that must be active; otherwise the request fails with 412.",
    "X-Admin-Author": "The author of the change; default `admin`. Only with the root token: the "
    "author of an operator's change is the operator.",
}
DELETE = Docs(headers=_HEADERS)
EDIT = Docs(
    headers={
        **_HEADERS,
        "If-None-Match": "`*`: the config must not exist; otherwise the request fails with 412.",
    },
)
DIFF = Docs(
    answers={
        200: OtherResponse("The changes, as `{from, to, changes: [{path, before?, after?}]}`.", "application/json")
    },
)
