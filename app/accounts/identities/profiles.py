"""Profiles at sign-in platforms: the endpoints that list them, and the job that fetches them (§2.5, §4.5)."""

import structlog

from app.accounts.proofs.third_party import profile_value
from app.accounts.sign_in.views import PublicSocialProfile
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Query
from app.services import Services
from storage.accounts import identities, profiles
from storage.accounts.identities import Identity, details_of
from storage.accounts.profiles import FetchProfile, StoredProfile
from streams.wire.errors import ConfigInvalid, InvalidParameter, PermissionDenied
from streams.wire.ids import is_id
from streams.wire.model import Model
from vendors.errors import VendorError
from vendors.signin.protocols import ProofRefused, VerifiedIdentity

log = structlog.get_logger()

_MAX_USERS = 100


class UserIdsQuery(Model):
    user_ids: str
    """Comma-separated ids of users, at most 100."""


class ProfilesReply(Model):
    """The profiles of the user's social accounts."""

    social_profiles: list[PublicSocialProfile]


class BatchReply(Model):
    """The profiles of each user, and the ids of those who do not exist."""

    social_profile: dict[str, list[PublicSocialProfile]]
    """The profiles of the users that exist, by user id."""
    inexistent_user_ids: list[str]


async def own_profiles(call: Call) -> ProfilesReply:
    """List the profiles of the user's social accounts.

    Platforms that reported none are left out.
    """
    async with call.services.database.connection() as conn:
        found = await profiles.of_users(conn, call.app_id, uids=[call.caller.user])
    return ProfilesReply(social_profiles=list(map(_view, found.get(call.caller.user, []))))


async def batch_profiles(call: Call, query: Query[UserIdsQuery]) -> BatchReply:
    """List the profiles of several users.

    The user in the path need not be one of them. A server token with a `sub` reads the profiles of that user only.
    """
    names = list(dict.fromkeys(name.strip() for name in query.user_ids.split(",") if name.strip()))
    if not names:
        raise InvalidParameter("user_ids is required")
    if len(names) > _MAX_USERS:
        raise InvalidParameter(f"user_ids must have at most {_MAX_USERS} entries")
    if call.caller.only_user and names != [call.caller.user]:
        raise PermissionDenied("user_ids names users other than the sub of X-Service-Auth-Token")
    async with call.services.database.connection() as conn:
        found = await profiles.of_users(conn, call.app_id, uids=[name for name in names if is_id(name)])
    return BatchReply(
        social_profile={name: list(map(_view, found[name])) for name in names if name in found},
        inexistent_user_ids=[name for name in names if name not in found],
    )


def _view(stored: StoredProfile) -> PublicSocialProfile:
    return PublicSocialProfile(social_id=stored.social_id, platform=stored.platform, **stored.profile)


async def fetch_profile(services: Services, job: FetchProfile) -> None:
    """Fetch and store a profile, unless the identity is gone or its platform has no profiles.

    Only temporary failures are retried: a platform may refuse the profile for good, for example because the person
    has not allowed access to it.
    """
    identity = Identity(job.app_id, job.platform, job.social_id)
    async with services.database.connection() as conn:
        linked = await identities.find(conn, identity)
    if linked is None:
        return
    details = details_of(linked, job.app_id, keyring=services.keyring)
    known = VerifiedIdentity(
        linked.social_id,
        openid=details.openid,
        xid=details.xid,
        access_token=details.access_token,
        refresh_token=details.refresh_token,
        expiration_date=details.expiration_date,
    )
    try:
        client = services.sign_in.open(job.app_id, job.platform)
        profile = await client.call(lambda sign_in: sign_in.profile(known))
    except (ProofRefused, ConfigInvalid, VendorError) as error:
        if isinstance(error, VendorError) and error.retryable:
            raise
        log.info("profile.not_fetched", app_id=job.app_id, platform=job.platform, error=error.what)
        return
    value = None if profile is None else profile_value(profile)
    if value is not None:
        async with services.database.connection() as conn:
            await profiles.store(conn, identity, profile=value)
