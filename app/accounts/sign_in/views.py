"""JSON representation of users (§2.3-§2.6)."""

from pydantic import Field

from app.accounts.sign_in.platforms import PLATFORMS
from storage.accounts.bp_auth import BpAuth
from storage.accounts.identities import Details, LinkedIdentity, UserAccount, details_of
from storage.secrets import Keyring
from streams.wire.model import Model


class PublicSocialProfile(Model):
    """A person's profile at a platform. Strings are empty if the platform does not report them."""

    social_id: str
    """The id on the platform."""
    platform: str
    """The sign-in platform."""
    user_name: str = ""
    avatar: str = ""
    """A URL."""
    email: str = ""
    """An address that the platform reports as verified. Unverified addresses, which may belong to anybody, are
    omitted."""
    region: str = ""
    province: str = ""
    city: str = ""
    gender: int = 0
    """0 unknown, 1 male, 2 female."""


class SocialAccount(Model):
    """A third-party identity.

    Device and anonymous ids are never shown, because everybody who knows one can log in with it.
    """

    platform: str
    """The sign-in platform, such as `microblog`."""
    id: str
    openid: str | None = None
    xid: str | None = None
    access_token: str | None = None
    """The platform's token of the last proof. Present only when the user is read, and after a re-authorization."""
    refresh_token: str | None = None
    """Present only when the user is read."""
    expiration_date: int | None = None
    """Unix seconds at which `access_token` expires. Absent if it is unknown."""
    social_profile: PublicSocialProfile | None = None
    """It is fetched after the login or the bind. Absent if the platform reported nothing."""


class SessionView(Model):
    session_token: str
    """The value for `X-Service-Session-Token`. It is not shown again."""


class PhoneView(Model):
    phone_number: str


class EmailView(Model):
    email_address: str
    verified: bool
    """Whether the user has proven to receive emails at this address."""


class UserView(Model):
    uid: str
    create_time: int
    """Unix seconds."""
    name: str
    """Empty until the user has a name."""
    is_new_user: bool
    """Whether this call created the user."""
    cuid: str
    """The `cuid` of the last login that sent one; empty if none did."""
    social_accounts: list[SocialAccount] = Field(default_factory=list)
    phone: PhoneView | None = None
    email: EmailView | None = None
    """The address with which the user logs in or, without one, an address that is bound but not verified yet."""
    session: SessionView | None = None
    """Only in responses to login and signup."""


class BpAuthView(Model):
    bp_auth_token: str
    """The value of `bp_auth_token` in a login."""
    expire_at_ms: int
    """Unix milliseconds."""


class UserReply(Model):
    """The user."""

    user: UserView


class LoginReply(UserReply):
    """The user who is logged in, with the session."""

    bp_auth: BpAuthView | None = None
    """Only for third-party identities."""


def user_view(
    account: UserAccount,
    *,
    is_new_user: bool = False,
    session_token: str | None = None,
    tokens_for: str | None = None,
    keyring: Keyring | None = None,
) -> UserView:
    """Return a user, with the platforms' tokens if `tokens_for` (the id of the app) and `keyring` are given."""
    user = account.user
    phone = next((identity.social_id for identity in account.identities if identity.platform == "phone"), None)
    return UserView(
        uid=user.uid,
        create_time=int(user.create_time.timestamp()),
        name=user.name,
        is_new_user=is_new_user,
        cuid=user.cuid,
        social_accounts=[
            social_account(
                identity, None if keyring is None else details_of(identity, tokens_for or "", keyring=keyring)
            )
            for identity in account.identities
            if identity.platform in PLATFORMS and PLATFORMS[identity.platform].third_party
        ],
        phone=None if phone is None else PhoneView(phone_number=phone),
        email=_email_view(account),
        session=None if session_token is None else SessionView(session_token=session_token),
    )


def _email_view(account: UserAccount) -> EmailView | None:
    for identity in account.identities:
        if identity.platform == "email":
            return EmailView(email_address=identity.social_id, verified=identity.trust == "proven")
    if account.pending_email:
        return EmailView(email_address=account.pending_email, verified=False)
    return None


def social_account(linked: LinkedIdentity, details: Details | None = None) -> SocialAccount:
    """Return an identity. With `details`, it contains everything that is stored about it."""
    shown = SocialAccount(
        platform=linked.platform,
        id=linked.social_id,
        openid=linked.openid or None,
        xid=linked.xid or None,
    )
    if details is None:
        return shown
    more = {
        "access_token": details.access_token or None,
        "refresh_token": details.refresh_token or None,
        "expiration_date": details.expiration_date or None,
        "social_profile": None if linked.profile is None else profile_view(linked),
    }
    return shown.model_copy(update=more)


def profile_view(linked: LinkedIdentity) -> PublicSocialProfile:
    return PublicSocialProfile(social_id=linked.social_id, platform=linked.platform, **linked.profile or {})


def bp_auth_view(made: BpAuth | None) -> BpAuthView | None:
    if made is None:
        return None
    return BpAuthView(bp_auth_token=made.token, expire_at_ms=int(made.expires_at.timestamp() * 1000))
