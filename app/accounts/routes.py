"""The account rows of the route table (§4.1, §4.2, §4.5)."""

from app.accounts.login import LoginBody, login
from app.accounts.logout import logout
from app.accounts.users import get_user
from app.accounts.views import UserReply
from app.caller import Access
from app.endpoint import Endpoint

_TAG = "account"

ACCOUNT_ROUTES: list[Endpoint] = [
    Endpoint(
        "POST",
        "/bp/user/login",
        login,
        s2s="/bp/server/user/login",
        access=Access.SIGNED,
        body=LoginBody,
        reply=UserReply,
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        "/bp/user/logout",
        logout,
        s2s="/bp/server/user/logout",
        tag=_TAG,
        frozen_allowed=True,
        session_pair=True,
    ),
    Endpoint(
        "GET",
        "/bp/user/me",
        get_user,
        s2s="/bp/server/user/{user_id}",
        reply=UserReply,
        tag=_TAG,
        frozen_allowed=True,
        missing_user="not_found",
        session_pair=True,
    ),
]
