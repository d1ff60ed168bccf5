"""Error responses of RFC 6749, for the sandbox's providers that follow it."""

from vendors.sandbox.calls import Dialect, Refusal
from vendors.sandbox.signin.grants import Reason, dialect

_REASONS: dict[Reason, tuple[int, str]] = {
    "unknown": (400, "invalid_grant"),
    "used": (400, "invalid_grant"),
    "expired": (400, "invalid_grant"),
    "other_app": (400, "invalid_grant"),
    "secret": (401, "invalid_client"),
}


def oauth_error(status: int, error: str) -> Refusal:
    return Refusal(status, {"error": error, "error_description": f"The request was refused: {error}."})


def oauth_refusal(reason: Reason) -> Refusal:
    return oauth_error(*_REASONS[reason])


def oauth_dialect(vendor: str) -> Dialect:
    return dialect(
        vendor,
        busy=oauth_error(400, "temporarily_unavailable"),
        limited=Refusal(429, {"error": "slow_down"}, {"Retry-After": "7"}),
        denied=oauth_error(400, "access_denied"),
    )
