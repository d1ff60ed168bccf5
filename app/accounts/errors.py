"""The errors that the handlers of the account endpoints raise (§7)."""

from collections.abc import Mapping
from typing import Any

from storage.accounts.users import Ban
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
    """No user has the identity, or its proof is wrong. The message does not say which."""

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


class LastLoginMethod(ServiceError):
    """Without this identity, nobody could log in as the user any more."""

    error_type = "account.sp_link_may_cause_ghost"
    status = 400


class NameTaken(InvalidParameter):
    """The name belongs to another user."""

    def __init__(self) -> None:
        super().__init__("name_password.name is taken")


class EmailTaken(ServiceError):
    """The email address belongs to another user. If a code has proven it, `bp_auth` logs in as that user."""

    error_type = "account.email_already_exists"
    status = 400

    def __init__(self, *, bp_auth: Mapping[str, Any] | None = None) -> None:
        super().__init__("the email address belongs to another user", bp_auth=bp_auth)


class EmailAlreadyBound(ServiceError):
    """The user already has an email address. If a code has proven the new one, `bp_auth` logs in with that one."""

    error_type = "account.user_already_bound_email"
    status = 400

    def __init__(self, *, bp_auth: Mapping[str, Any] | None = None) -> None:
        super().__init__("the user already has an email address", bp_auth=bp_auth)


class EmailNotFound(ServiceError):
    """The user has no email address."""

    error_type = "account.email_not_found"
    status = 400

    def __init__(self) -> None:
        super().__init__("the user has no email address")


class EmailInvalid(ServiceError):
    """The value is not an email address."""

    error_type = "account.email_invalid"
    status = 400

    def __init__(self) -> None:
        super().__init__("email must be an email address")


class EmailLoginNotAllowed(ServiceError):
    """Users of the app have no email addresses."""

    error_type = "account.email_login_not_allowed"
    status = 400

    def __init__(self) -> None:
        super().__init__("users of this app do not log in with email addresses")


class TooManyFailedLogins(RateLimited):
    """Too many logins to the account, or from the client IP address, have failed."""

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__("too many failed logins, retry later", retry_after_s=retry_after_s)


class TooManyCodes(RateLimited):
    """Too many codes were requested for the email address or phone number, or from the client IP address."""

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__("too many codes were requested, retry later", retry_after_s=retry_after_s)


class CodeNotSent(BackendUnavailable):
    """The code cannot be sent at the moment."""

    retryable = True
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("the code cannot be sent at the moment, retry later")


class OperationNotAllowed(ServiceError):
    """The state of the account does not allow this."""

    error_type = "operation_not_allowed"
    status = 400


class DeactivationRefused(OperationNotAllowed):
    """The account cannot be deactivated at the moment, for example because a withdrawal is not processed."""


class UserBanned(OperationNotAllowed):
    """An operator has banned the user, or a deleted user to whom this identity belonged.

    `until_ms` in `extra` is the Unix time in milliseconds at which the ban ends. Without it, the ban has no end.
    """

    def __init__(self, ban: Ban) -> None:
        extra = {} if ban.until is None else {"until_ms": int(ban.until.timestamp() * 1000)}
        super().__init__("the user is banned", extra=extra)


class NotFrozen(InvalidParameter):
    """The account is not frozen, so its deactivation can be neither confirmed nor cancelled."""
