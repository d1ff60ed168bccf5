"""Routes of the account endpoints (§4.1, §4.2, §4.5)."""

from dataclasses import replace

from app.accounts.login import login
from app.accounts.logout import logout
from app.accounts.users import get_user
from app.http.area import Area
from app.http.caller import Access
from app.http.docs import Docs
from app.http.endpoint import Endpoint
from app.http.openapi.errors import FROZEN
from streams.wire.errors import ConfigInvalid, InvalidParameter, RateLimited, ServiceError, Unavailable

ACCOUNT = Area("account", "Accounts", "Login, logout and user data.", s2s=True, scope="account")
BEFORE_LOGIN = replace(ACCOUNT, access=Access.SIGNED)
OWN_ACCOUNT = replace(ACCOUNT, frozen_allowed=True, accepts_session=True)

_LOGIN = Docs(
    bodies={
        "A device": {"device": {"id": "5b0c1d6e-8f2a-4a53-9d0e-0c2f8f6f7a11"}, "platform": "ios"},
        "Anonymous": {"anonymity": {"local_uid": "5b0c1d6e"}},
    },
    errors=(
        InvalidParameter("a platform is required: one of anonymity, device"),
        ConfigInvalid("platform phone is not configured"),
        ServiceError("this app does not allow anonymous login", error_type="anonymous_login_not_allowed"),
        FROZEN,
        RateLimited("more than 20 calls in 3600 s", retry_after_s=180),
        Unavailable("the account changed during the login", retry_after_s=1),
    ),
)

_GET_USER = Docs(errors=(ServiceError("user does not exist", error_type="not_found"),))

ACCOUNT_ROUTES = [
    Endpoint("POST", "/bp/user/login", login, BEFORE_LOGIN, docs=_LOGIN),
    Endpoint("POST", "/bp/user/logout", logout, OWN_ACCOUNT),
    Endpoint("GET", "/bp/user/me", get_user, replace(OWN_ACCOUNT, unknown_user_error="not_found"), docs=_GET_USER),
]
