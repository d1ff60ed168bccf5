"""Routes of the account endpoints (§4.1-§4.8)."""

from dataclasses import replace

from app.accounts.area import (
    ACCOUNT,
    BEFORE_LOGIN,
    BEFORE_LOGIN_BY_CODE,
    CLIENT_ONLY,
    EMAIL_FLOW,
    OF_USER,
    OWN_ACCOUNT,
    SERVER_ONLY,
    SIGN_UP,
    SOCIAL,
)
from app.accounts.email_routes import EMAIL_ROUTES
from app.accounts.errors import (
    AccountAuthFailed,
    AccountNotFound,
    AnonymousLoginNotAllowed,
    CodeNotSent,
    DeactivationRefused,
    EmailTaken,
    IdentityLinked,
    IdentityNotFound,
    LastLoginMethod,
    NameTaken,
    NotFrozen,
    PlatformLinked,
    TooManyCodes,
    TooManyFailedLogins,
    UserBanned,
)
from app.accounts.identities.bind import bind, reauthorize, unbind
from app.accounts.identities.profiles import batch_profiles, own_profiles
from app.accounts.leaving.deactivation import confirm, deactivate, read_keys, read_receipt, recover
from app.accounts.passwords.passwords import change_password
from app.accounts.phone.phone import send_phone_verify_code
from app.accounts.proofs.addresses import EmailConfigInvalid
from app.accounts.proofs.code_sending import CODES_SENT
from app.accounts.sessions.logout import logout
from app.accounts.sessions.sessions import end_session, list_sessions
from app.accounts.sign_in.login import login
from app.accounts.sign_in.signup import signup
from app.accounts.users import get_user, record_activity
from app.http.callers.caller import Access
from app.http.errors import DeactivationPending
from app.http.rows.docs import Docs
from app.http.rows.endpoint import Endpoint
from app.password_hashing import PasswordsBusy
from storage.accounts.codes import CodeEmpty, CodeInvalid, CodeOutOfDate
from storage.accounts.sessions import SessionNotFound
from streams.wire.errors import RateLimited, Unavailable
from vendors.signin.protocols import ProofRefused, ProviderUnavailable

_LOGIN = Docs(
    bodies={
        "A device": {"device": {"id": "5b0c1d6e-8f2a-4a53-9d0e-0c2f8f6f7a11"}, "platform": "ios"},
        "Anonymous": {"anonymity": {"local_uid": "5b0c1d6e"}},
        "A name and a password": {"name_password": {"name": "ada", "password": "correct horse battery"}},
        "A phone number": {"phone": {"phone_number": "+4915112345678", "verify_code": "493027"}},
        "An address and a password": {
            "email_password": {"email": "ada@example.com", "password": "correct horse battery"}
        },
        "An address and a code": {"email_code": {"email": "ada@example.com", "verify_code": "493027"}},
        "A third party": {
            "search_vendor_id": {"id_token": "eyJhbGciOiJSUzI1NiIs..."},
            "platform": "android",
        },
        "A token of an earlier response": {"bp_auth_token": "ba_2fJx0uVn..."},
    },
)
_SIGN_UP = Docs(
    bodies={
        "A name and a password": {
            "name_password": {"name": "ada", "password": "correct horse battery"},
            "platform": "ios",
        },
        "An address and a password": {
            "email_password": {"email": "ada@example.com", "password": "correct horse battery"}
        },
    },
)
_CHANGE_PASSWORD = Docs(
    bodies={"A new password": {"origin_password": "correct horse battery", "password": "staple gun at dawn"}}
)
_SEND_PHONE_CODE = Docs(bodies={"A phone number": {"phone_number": "+4915112345678", "platform": "ios"}})
_BIND = Docs(
    bodies={
        "A code": {"photo_network": {"code": "AQBx-hBsH3..."}},
        "A player": {"android_games_service": {"player_id": "g01234567890"}},
    }
)
_REAUTHORIZE = Docs(
    bodies={
        "A new token": {
            "social_network_a": {"access_token": "EAAJZC...", "id": "1022334455", "expiration_date": 1_800_000_000}
        }
    }
)
_CODE_ERRORS = (CodeEmpty, CodeOutOfDate, CodeInvalid)
_PROOF_ERRORS = (AccountAuthFailed, ProofRefused, ProviderUnavailable, RateLimited, Unavailable)

ACCOUNT_ROUTES = [
    Endpoint(
        "POST",
        "/bp/user/login",
        login,
        BEFORE_LOGIN,
        errors=(
            AnonymousLoginNotAllowed,
            DeactivationPending,
            EmailConfigInvalid,
            TooManyFailedLogins,
            UserBanned,
            PasswordsBusy,
            *_CODE_ERRORS,
            *_PROOF_ERRORS,
        ),
        docs=_LOGIN,
    ),
    Endpoint(
        "POST",
        "/bp/user/signup",
        signup,
        SIGN_UP,
        errors=(
            NameTaken,
            EmailTaken,
            UserBanned,
            RateLimited,
            TooManyCodes,
            TooManyFailedLogins,
            PasswordsBusy,
            *_CODE_ERRORS,
        ),
        docs=_SIGN_UP,
    ),
    Endpoint(
        "POST",
        "/bp/user/send_phone_verify_code",
        send_phone_verify_code,
        BEFORE_LOGIN_BY_CODE,
        limit=CODES_SENT,
        errors=(TooManyCodes, CodeNotSent),
        docs=_SEND_PHONE_CODE,
    ),
    Endpoint("POST", "/bp/user/logout", logout, OWN_ACCOUNT),
    Endpoint(
        "GET",
        "/bp/user/me",
        get_user,
        replace(SOCIAL, frozen_allowed=True),
        errors=(AccountNotFound,),
    ),
    Endpoint(
        "POST",
        "/bp/user/me/socialaccount",
        bind,
        SOCIAL,
        errors=(PlatformLinked, IdentityLinked, UserBanned, *_PROOF_ERRORS),
        docs=_BIND,
    ),
    Endpoint(
        "DELETE",
        "/bp/user/me/socialaccount/{platform}/{id}",
        unbind,
        SOCIAL,
        errors=(IdentityNotFound, LastLoginMethod),
    ),
    Endpoint(
        "PUT",
        "/bp/user/me/socialaccount/{platform}/{id}",
        reauthorize,
        SOCIAL,
        errors=(IdentityNotFound, *_PROOF_ERRORS),
        docs=_REAUTHORIZE,
    ),
    Endpoint(
        "PUT",
        "/bp/user/me/password",
        change_password,
        EMAIL_FLOW,
        errors=(AccountAuthFailed, TooManyFailedLogins, PasswordsBusy),
        docs=_CHANGE_PASSWORD,
    ),
    Endpoint("GET", "/bp/user/me/social_profiles", own_profiles, CLIENT_ONLY),
    Endpoint("GET", "/bp/server/user/{user_id}/social_profile", batch_profiles, SERVER_ONLY),
    Endpoint("POST", "/bp/server/user/{user_id}/account/record_activity", record_activity, OF_USER),
    Endpoint("GET", "/bp/user/me/sessions", list_sessions, OF_USER),
    Endpoint("DELETE", "/bp/user/me/sessions/{session_id}", end_session, OF_USER, errors=(SessionNotFound,)),
    Endpoint("POST", "/bp/user/me/deactivate", deactivate, OWN_ACCOUNT, errors=(DeactivationRefused,)),
    Endpoint("POST", "/bp/user/me/deactivate/confirm", confirm, OWN_ACCOUNT, errors=(NotFrozen,)),
    Endpoint("POST", "/bp/user/me/deactivate/recover", recover, OWN_ACCOUNT, errors=(NotFrozen,)),
    Endpoint(
        "GET",
        "/bp/server/user/{user_id}/erasure_receipt",
        read_receipt,
        replace(ACCOUNT, unknown_user_error=None),
        errors=(AccountNotFound,),
    ),
    Endpoint("GET", "/.well-known/jwks.json", read_keys, replace(CLIENT_ONLY, access=Access.PUBLIC)),
    *EMAIL_ROUTES,
]
