"""Rows of the pages and of the files that they consist of."""

from app.http.callers.area import Area, Audience
from app.http.callers.caller import Access
from app.http.request.large_responses import LARGE_RESPONSE_ERRORS
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Endpoint, Handler
from streams.wire.errors import ServiceError

PAGES = Area(
    "reference",
    "Pages",
    "This page, the talk page and the developer pages.",
    access=Access.PUBLIC,
    audience=Audience.DEVELOPMENT,
    access_log=False,
)


def page_row(
    path: str, handler: Handler, media_type: str, *, errors: tuple[type[ServiceError], ...] = ()
) -> Endpoint:
    answers = {
        200: OtherResponse("The file.", media_type),
        304: OtherResponse("The client already has the current version."),
    }
    return Endpoint(
        "GET", path, handler, PAGES, errors=(*errors, *LARGE_RESPONSE_ERRORS), docs=Docs(answers=answers)
    )
