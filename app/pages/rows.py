"""Rows of the pages and of the files that they consist of."""

from collections.abc import Sequence

from app.http.area import Area
from app.http.caller import Access
from app.http.docs import Docs, OtherResponse
from app.http.endpoint import Endpoint, Handler
from streams.wire.errors import ServiceError

PAGES = Area("reference", "Pages", "This page and the talk page.", access=Access.PUBLIC, access_log=False)


def page_row(path: str, handler: Handler, media_type: str, *, errors: Sequence[ServiceError] = ()) -> Endpoint:
    answers = {
        200: OtherResponse("The file.", media_type),
        304: OtherResponse("The client already has the current version."),
    }
    return Endpoint("GET", path, handler, PAGES, docs=Docs(answers=answers, errors=errors))
