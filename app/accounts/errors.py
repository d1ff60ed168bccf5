"""The errors of the account endpoints, beside those of the checks before their handlers (§7)."""

from streams.wire.errors import (
    BackendUnavailable,
    InvalidParameter,
    ItemNotFound,
    NotFound,
    RateLimited,
    ServiceError,
)


class AnonymousLoginNotAllowed(ServiceError):
    """The app does not allow anonymous login."""

    error_type = "anonymous_login_not_allowed"
    status = 400


class AccountAuthFailed(ServiceError):
    """No user has the identity, or its proof is wrong. The message does not tell which."""

    error_type = "account.auth_failed"
    status = 400

    def __init__(self, what: str = "user does not exist or the password is wrong") -> None:
        super().__init__(what)


class AccountNotFound(NotFound):
    """The user does not exist."""


class IdentityNotFound(ItemNotFound):
    """The user has no such identity."""


class PlatformLinked(ServiceError):
    """The user already has this identity, or another one of the platform. `bp_auth` logs in with this identity."""

    error_type = "account.sp_linked_platform"
    status = 400


class IdentityLinked(ServiceError):
    """The identity belongs to another user. `bp_auth` logs in as that user."""

    error_type = "account.sp_linked_another"
    status = 400


class LastWayIn(ServiceError):
    """Without this identity, nobody could log in as the user any more."""

    error_type = "account.sp_link_may_cause_ghost"
    status = 400


class NameTaken(InvalidParameter):
    """The name belongs to another user."""

    def __init__(self) -> None:
        super().__init__("name_password.name is taken")


class TooManyFailedLogins(RateLimited):
    """Too many logins to the account, or from the address of the caller, have failed."""

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__("too many failed logins, retry later", retry_after_s=retry_after_s)


class TooManyCodes(RateLimited):
    """Too many codes were requested for the address or the phone number, or from the address of the caller."""

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__("too many codes were requested, retry later", retry_after_s=retry_after_s)


class CodeNotSent(BackendUnavailable):
    """The code cannot be sent at the moment."""

    retryable = True
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("the code cannot be sent at the moment, retry later")
