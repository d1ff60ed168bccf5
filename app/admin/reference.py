"""What the reference page says of the configs' endpoints beyond their types."""

from dataclasses import replace

from app.http.docs import Docs, OtherResponse
from streams.wire.errors import InvalidOperation, InvalidParameter, ItemNotFound, ServiceError

_NO_KIND = ItemNotFound("kind voices does not exist")
_ABSENT = ItemNotFound("speech calm does not exist")
_NO_REVISION = ItemNotFound("speech calm has no revision 7")
READ = Docs(errors=(_NO_KIND, _ABSENT, _NO_REVISION))
OVERVIEW = Docs(errors=(_NO_KIND, ItemNotFound("app other does not exist")))
DELETE = Docs(
    headers={
        "If-Match": "The revision that must be the active one.",
        "X-Admin-Author": "Who makes the change; `admin` where nobody is named.",
    },
    errors=(
        _NO_KIND,
        InvalidParameter("If-Match must be the number of a revision"),
        InvalidOperation("If-Match is not the active revision", status_hint=412),
        _ABSENT,
    ),
)
PUT = replace(
    DELETE,
    errors=(
        *DELETE.errors[:-1],
        InvalidParameter("account is required"),
        ServiceError("app other does not exist", error_type="app_not_found"),
    ),
)
DIFF = Docs(
    errors=(_NO_REVISION,),
    answers={200: OtherResponse("`{from, to, changes: [{path, before?, after?}]}`", "application/json")},
)
VALIDATE = Docs(errors=(_NO_KIND,))
REVISIONS = Docs(errors=(_NO_KIND, _ABSENT))
ROLLBACK = replace(PUT, errors=(*PUT.errors, _NO_REVISION))
