"""The errors that the interface lists for each account endpoint (§4.1-§4.7), and which cannot occur."""

from dataclasses import dataclass

_COMMON = "405 method_not_allowed, 500 internal, 502 gateway"
_CODES = "400 account.code_empty, 400 account.code_out_of_date, 400 account.code_invalid"
_SENDING = "400 invalid_parameter, 400 backend unavailable, 417 config_invalid, 429 api_rate_limit"
_SESSION = "400 app_not_found, 400 account.invalid_session"


@dataclass(frozen=True)
class Listing:
    """An endpoint with its paths for clients and for servers. Empty: it has no such path."""

    name: str
    method: str
    path: str
    server_path: str
    errors: frozenset[str]
    """Each with its status."""


def _listing(name: str, method: str, path: str, server_path: str, *errors: str) -> Listing:
    return Listing(name, method, path, server_path, frozenset(", ".join(errors).split(", ")))


_ME, _USER = "/bp/user/me", "/bp/server/user/{user_id}"
_IDENTITY = "/socialaccount/{platform}/{id}"
LISTED = [
    _listing(
        "login",
        "POST",
        "/bp/user/login",
        "/bp/server/user/login",
        "400 app_not_found, 400 anonymous_login_not_allowed, 400 invalid_parameter, 400 account.auth_failed",
        "400 account.sp_auth_failed, 400 account.deactivate_pending_user, 417 config_invalid",
        _CODES,
        _COMMON,
    ),
    _listing("logout", "POST", "/bp/user/logout", "/bp/server/user/logout", _SESSION),
    _listing(
        "signup",
        "POST",
        "/bp/user/signup",
        "/bp/server/user/signup",
        "400 invalid_api_version, 405 method_not_allowed, 500 config_invalid, 502 gateway",
    ),
    _listing(
        "detect",
        "POST",
        "/bp/user/detect",
        "/bp/server/user/detect",
        "400 account.email_invalid, 400 account.email_login_not_allowed, 500 internal",
    ),
    _listing(
        "bind",
        "POST",
        f"{_ME}/socialaccount",
        f"{_USER}/socialaccount",
        "400 app_not_found, 400 invalid_parameter, 400 account.auth_failed, 400 account.sp_auth_failed",
        "400 account.sp_linked_platform, 400 account.sp_linked_another",
        _COMMON,
    ),
    _listing("unbind", "DELETE", _ME + _IDENTITY, _USER + _IDENTITY, _SESSION, _COMMON),
    _listing("reauthorize", "PUT", _ME + _IDENTITY, _USER + _IDENTITY, _SESSION, _COMMON),
    _listing("get user", "GET", _ME, _USER, _SESSION, "400 invalid_parameter, 404 not_found", _COMMON),
    _listing("own profiles", "GET", f"{_ME}/social_profiles", "", _COMMON),
    _listing("batch profiles", "GET", "", f"{_USER}/social_profile", _COMMON),
    _listing(
        "deactivate",
        "POST",
        f"{_ME}/deactivate",
        f"{_USER}/deactivate",
        "400 invalid_parameter, 400 operation_not_allowed",
    ),
    _listing(
        "confirm", "POST", f"{_ME}/deactivate/confirm", f"{_USER}/deactivate/confirm", "400 invalid_parameter"
    ),
    _listing(
        "recover", "POST", f"{_ME}/deactivate/recover", f"{_USER}/deactivate/recover", "400 invalid_parameter"
    ),
    _listing("send code", "POST", "/bp/user/send_email_verify_code", "", _SENDING),
    _listing("verify", "GET", "/bp/user/email/verify", "", _SENDING, _CODES),
    _listing("verify result", "GET", f"{_ME}/email/verify_result", "", "417 config_invalid"),
    _listing("send own code", "POST", f"{_ME}/email/send_verify_code", "", _SENDING),
    _listing("forgot password", "POST", "/bp/user/email/forgot_password", "", _SENDING),
    _listing(
        "reset password",
        "POST",
        "/bp/user/email/reset_password",
        "",
        "400 invalid_parameter, 417 config_invalid",
        _CODES,
    ),
    _listing("change password", "PUT", f"{_ME}/password", "", "400 invalid_parameter, 417 config_invalid"),
    _listing(
        "bind email",
        "POST",
        f"{_ME}/email",
        "",
        "400 invalid_parameter, 400 account.email_already_exists, 400 account.user_already_bound_email",
        _CODES,
    ),
    _listing(
        "unbind email",
        "DELETE",
        f"{_ME}/email",
        "",
        "400 invalid_parameter, 400 account.email_not_found, 400 account.sp_link_may_cause_ghost",
    ),
    _listing("change email", "PUT", f"{_ME}/email", "", "400 invalid_parameter, 400 account.email_not_found"),
]

_CALLS_PLATFORMS = {"login", "bind", "reauthorize"}
IMPOSSIBLE = {
    # Only a bug is an `internal` error.
    **{(row.name, "500 internal"): "internal" for row in LISTED if "500 internal" in row.errors},
    # Other endpoints call no sign-in platform. A proxy in front of the server may answer with 502.
    **{
        (row.name, "502 gateway"): ""
        for row in LISTED
        if "502 gateway" in row.errors and row.name not in _CALLS_PLATFORMS
    },
    # What can be bound is proven by a third-party platform, whose refusal is `account.sp_auth_failed`.
    ("bind", "400 account.auth_failed"): "account.auth_failed",
}
"""Listed errors that no request causes. The value is the error type if the route table lists it nevertheless."""
