"""Routes of emails that apps send."""

from dataclasses import replace

from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Endpoint
from app.mail.errors import ApiEmailInvalid, EmailToInvalid
from app.mail.links import PIXEL_PATH, UNSUBSCRIBE_PATH
from app.mail.send import LIMIT, send
from app.mail.tracking import DIRECT, pixel, pixel_head
from app.mail.unsubscribe import error_page, unsubscribe, unsubscribe_page
from storage.mail.mails import SendDuplicate
from streams.wire.errors import ConfigInvalid, DatabaseError, DatabaseUnavailable

AREA = Area(
    "mail",
    "Emails of apps",
    "Emails that an app sends to its users by named strategies, and how it learns that they were opened.",
    s2s=True,
    scope="mail",
    statuses={ConfigInvalid: 417},
)
PUBLIC = replace(AREA, access=Access.PUBLIC, s2s=False, scope="", statuses={})
"""Endpoints that mail programs and browsers of recipients call."""
UNSUBSCRIBE = replace(PUBLIC, error_page=error_page)
PIXEL = replace(PUBLIC, ignores_app=True, access_log=False)
"""The query contains an email address, and requests are frequent."""
_IMAGE = Docs(answers={200: OtherResponse("A transparent GIF of one pixel.", "image/gif")})
_PAGE = Docs(answers={200: OtherResponse("A page.", "text/html")})
_DONE = Docs(answers={200: OtherResponse("A page, or an empty object.", "application/json")})
_BODY_BYTES = 320 * 1024

MAIL_HUB_ROUTES = [
    Endpoint(
        "POST",
        "/bp/user/me/mail_hub/send",
        send,
        AREA,
        limit=LIMIT,
        body_bytes=_BODY_BYTES,
        errors=(ApiEmailInvalid, EmailToInvalid, SendDuplicate),
    ),
    Endpoint("GET", PIXEL_PATH, pixel, PIXEL, direct=DIRECT, docs=_IMAGE),
    Endpoint("HEAD", PIXEL_PATH, pixel_head, PIXEL, direct=DIRECT),
    Endpoint("GET", UNSUBSCRIBE_PATH, unsubscribe_page, UNSUBSCRIBE, docs=_PAGE),
    Endpoint(
        "POST",
        UNSUBSCRIBE_PATH,
        unsubscribe,
        UNSUBSCRIBE,
        errors=(DatabaseError, DatabaseUnavailable),
        docs=_DONE,
    ),
]
