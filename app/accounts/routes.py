"""Routes of the account endpoints (§4.1, §4.2, §4.5)."""

from dataclasses import replace

from app.accounts.login import AnonymousLoginNotAllowed, login
from app.accounts.logout import logout
from app.accounts.users import AccountNotFound, get_user
from app.http.area import Area
from app.http.caller import Access
from app.http.docs import Docs
from app.http.endpoint import Endpoint
from app.http.errors import DeactivationPending
from streams.wire.errors import RateLimited, Unavailable

ACCOUNT = Area("account", "Accounts", "Login, logout and user data.", s2s=True, scope="account")
BEFORE_LOGIN = replace(ACCOUNT, access=Access.SIGNED)
OWN_ACCOUNT = replace(ACCOUNT, frozen_allowed=True, accepts_session=True)

_LOGIN = Docs(
    bodies={
        "A device": {"device": {"id": "5b0c1d6e-8f2a-4a53-9d0e-0c2f8f6f7a11"}, "platform": "ios"},
        "Anonymous": {"anonymity": {"local_uid": "5b0c1d6e"}},
    },
)

ACCOUNT_ROUTES = [
    Endpoint(
        "POST",
        "/bp/user/login",
        login,
        BEFORE_LOGIN,
        errors=(AnonymousLoginNotAllowed, DeactivationPending, RateLimited, Unavailable),
        docs=_LOGIN,
    ),
    Endpoint("POST", "/bp/user/logout", logout, OWN_ACCOUNT),
    Endpoint(
        "GET",
        "/bp/user/me",
        get_user,
        replace(OWN_ACCOUNT, unknown_user_error=AccountNotFound),
        errors=(AccountNotFound,),
    ),
]
