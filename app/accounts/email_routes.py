"""Routes of the email flows (§4.4, §4.7)."""

from dataclasses import replace

from app.accounts.area import ACCOUNT, BEFORE_LOGIN_BY_CODE, EMAIL_FLOW
from app.accounts.email.login import detect, send_email_verify_code
from app.accounts.email.reset import forgot_password, reset_password
from app.accounts.email.verify import preview_link, verify, verify_by_button, verify_result
from app.accounts.errors import (
    CodeNotSent,
    EmailAlreadyBound,
    EmailInvalid,
    EmailLoginNotAllowed,
    EmailNotFound,
    EmailTaken,
    LastLoginMethod,
    TooManyCodes,
    TooManyFailedLogins,
    UserBanned,
)
from app.accounts.identities.email import bind_email, change_email, send_own_verify_code, unbind_email
from app.accounts.mails.hosted import error_page
from app.accounts.proofs.code_sending import CODES_SENT
from app.http.callers.caller import Access
from app.http.callers.limits import Limit
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Endpoint
from app.password_hashing import PasswordsBusy
from storage.accounts.codes import CodeEmpty, CodeInvalid, CodeOutOfDate
from streams.wire.errors import (
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InvalidSession,
    RateLimited,
)

_EMAIL = "ada@example.com"
_CODES = (CodeEmpty, CodeOutOfDate, CodeInvalid)
_SENDING = (TooManyCodes, CodeNotSent)
_STORES = (DatabaseError, DatabaseUnavailable)
_LINK = replace(EMAIL_FLOW, access=Access.PUBLIC, error_page=error_page)

_SEND_CODE = Docs(
    bodies={
        "A login": {"email": _EMAIL, "platform": "ios", "type": "login_email"},
        "A sign-up": {
            "email": _EMAIL,
            "platform": "website",
            "type": "sign_up_email",
            "custom_variables": {"name": "Ada"},
        },
    }
)
_FORGOT = Docs(bodies={"A forgotten password": {"email": _EMAIL, "platform": "website"}})
_RESET = Docs(bodies={"A new password": {"random_code": "6xJ0rUQ2...", "password": "staple gun at dawn"}})
_ADDRESS = Docs(bodies={"An address": {"email": _EMAIL, "platform": "android"}})
_BIND = Docs(
    bodies={
        "A proven address": {"email": _EMAIL, "platform": "android", "verify_code": "493027"},
        "An address": {"email": _EMAIL, "platform": "android"},
    }
)
_PLATFORM = Docs(bodies={"A client": {"platform": "ios"}})
_VERIFY = Docs(
    answers={
        301: OtherResponse("The address is verified, and the app's config has a redirect."),
        200: OtherResponse("`{}`, or a page for browsers, which may ask for a button.", "application/json"),
    }
)
_PRESS = Docs(
    answers={
        301: OtherResponse("The address is verified, and the app's config has a redirect."),
        200: OtherResponse("`{}`, or a page for browsers.", "application/json"),
    }
)
_HEAD = Docs(answers={200: OtherResponse("The server answers.")})

EMAIL_ROUTES = [
    Endpoint(
        "POST",
        "/bp/user/detect",
        detect,
        replace(ACCOUNT, access=Access.SIGNED),
        limit=Limit("detect"),
        errors=(EmailInvalid, EmailLoginNotAllowed),
        docs=Docs(bodies={"An address": {"email": _EMAIL}}),
    ),
    Endpoint(
        "POST",
        "/bp/user/send_email_verify_code",
        send_email_verify_code,
        BEFORE_LOGIN_BY_CODE,
        limit=CODES_SENT,
        errors=_SENDING,
        docs=_SEND_CODE,
    ),
    Endpoint(
        "GET",
        "/bp/user/email/verify",
        verify,
        _LINK,
        limit=Limit("email_address", per_address=True),
        errors=(RateLimited, ConfigInvalid, CodeNotSent, *_CODES, *_STORES),
        docs=_VERIFY,
    ),
    Endpoint(
        "POST",
        "/bp/user/email/verify",
        verify_by_button,
        _LINK,
        limit=Limit("email_address", per_address=True),
        errors=(RateLimited, ConfigInvalid, CodeNotSent, *_CODES, *_STORES),
        docs=_PRESS,
    ),
    Endpoint("HEAD", "/bp/user/email/verify", preview_link, _LINK, docs=_HEAD),
    Endpoint(
        "POST",
        "/bp/user/email/forgot_password",
        forgot_password,
        BEFORE_LOGIN_BY_CODE,
        limit=CODES_SENT,
        errors=_SENDING,
        docs=_FORGOT,
    ),
    Endpoint(
        "POST",
        "/bp/user/email/reset_password",
        reset_password,
        BEFORE_LOGIN_BY_CODE,
        errors=(*_CODES, UserBanned, PasswordsBusy, TooManyFailedLogins),
        docs=_RESET,
    ),
    Endpoint("GET", "/bp/user/me/email/verify_result", verify_result, EMAIL_FLOW),
    Endpoint(
        "POST",
        "/bp/user/me/email/send_verify_code",
        send_own_verify_code,
        EMAIL_FLOW,
        limit=CODES_SENT,
        errors=_SENDING,
        docs=_PLATFORM,
    ),
    Endpoint(
        "POST",
        "/bp/user/me/email",
        bind_email,
        EMAIL_FLOW,
        limit=CODES_SENT,
        errors=(EmailTaken, EmailAlreadyBound, UserBanned, InvalidSession, TooManyFailedLogins, *_CODES, *_SENDING),
        docs=_BIND,
    ),
    Endpoint(
        "PUT",
        "/bp/user/me/email",
        change_email,
        EMAIL_FLOW,
        limit=CODES_SENT,
        errors=(EmailNotFound, EmailTaken, UserBanned, *_SENDING),
        docs=_ADDRESS,
    ),
    Endpoint("DELETE", "/bp/user/me/email", unbind_email, EMAIL_FLOW, errors=(EmailNotFound, LastLoginMethod)),
]
