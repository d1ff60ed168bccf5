"""The account rows of the route table (§4.1, §4.2, §4.5)."""

from app.accounts.login import LoginBody, login
from app.accounts.logout import logout
from app.accounts.users import get_user
from app.accounts.views import UserReply
from app.http.caller import Access
from app.http.docs import Docs
from app.http.endpoint import Endpoint
from app.http.openapi.errors import FROZEN
from streams.wire.errors import ConfigInvalid, InvalidParameter, RateLimited, ServiceError, Unavailable

_TAG = "account"

_LOGIN = Docs(
    bodies={
        "A device": {"device": {"id": "5b0c1d6e-8f2a-4a53-9d0e-0c2f8f6f7a11"}, "platform": "ios"},
        "Anonymous": {"anonymity": {"local_uid": "5b0c1d6e"}},
    },
    errors=(
        InvalidParameter("a platform is required: one of anonymity, device"),
        ConfigInvalid("platform phone is not configured"),
        ServiceError("this app does not allow it", error_type="anonymous_login_not_allowed"),
        FROZEN,
        RateLimited("more than 20 calls in 3600 s", retry_after_s=180),
        Unavailable("the account changed during the login", retry_after_s=1),
    ),
)

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
        docs=_LOGIN,
    ),
    Endpoint(
        "POST",
        "/bp/user/logout",
        logout,
        s2s="/bp/server/user/logout",
        tag=_TAG,
        frozen_allowed=True,
        accepts_session=True,
    ),
    Endpoint(
        "GET",
        "/bp/user/me",
        get_user,
        s2s="/bp/server/user/{user_id}",
        reply=UserReply,
        tag=_TAG,
        frozen_allowed=True,
        unknown_user_error="not_found",
        accepts_session=True,
        docs=Docs(errors=(ServiceError("user does not exist", error_type="not_found"),)),
    ),
]
