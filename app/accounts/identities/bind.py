"""The endpoints that bind third-party identities to a user, and unbind them (§4.5)."""

from collections.abc import Mapping
from functools import partial

from app.accounts.bans import refuse_banned_identity
from app.accounts.errors import IdentityLinked, IdentityNotFound, PlatformLinked
from app.accounts.identities.login_methods import unlink_identity
from app.accounts.mails.mails import notify_user
from app.accounts.proofs.infos import Identifier, SocialNetworkInfo
from app.accounts.proofs.proofs import Proven
from app.accounts.proofs.third_party import third_party
from app.accounts.proofs.trace import LoginTrace
from app.accounts.reports import report_change
from app.accounts.sessions.caller_lock import lock_caller
from app.accounts.sign_in.entry import issue_bp_auth, store_verified
from app.accounts.sign_in.platforms import PLATFORMS, PlatformBody, platform_of
from app.accounts.sign_in.views import BpAuthView, SocialAccount, bp_auth_view, social_account
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from storage.accounts import bp_auth, identities, sessions
from storage.accounts.bp_auth import BpAuth
from storage.accounts.identities import Identity, Link, LinkedIdentity, details_of
from streams.wire.errors import InvalidParameter, listed
from streams.wire.model import Model
from vendors.signin.protocols import ProofRefused

_REAUTHORIZED = "social_network_a"


class IdentityPath(Model):
    platform: str
    """`platform` of a social account."""
    id: Identifier
    """`id` of that social account."""


class ReauthorizeBody(Model):
    social_network_a: SocialNetworkInfo


class SocialAccountReply(Model):
    """The identity with its renewed token."""

    social_account: SocialAccount


class BindReply(SocialAccountReply):
    """The identity that was bound."""

    bp_auth: BpAuthView | None = None


async def bind(call: Call, body: Body[PlatformBody]) -> BindReply:
    """Bind a third-party identity.

    The user can log in with it from then on. If it is linked already, the error response also has a
    `bp_auth`, which logs in with this identity without a new authorization.
    """
    platform, info = platform_of(body, for_bind=True)
    claimed = partial(PLATFORMS[platform].claimed, call, info)
    async with LoginTrace(call, "bind", platform, claimed=claimed) as trace:
        proven = await PLATFORMS[platform].prove(call, info)
        trace.identify(proven.identity)
        link, made = await _link(call, proven)
        _check(link, made)
    verified = proven.verified
    assert verified is not None, "only third-party identities can be bound"
    bound = LinkedIdentity(platform, verified.social_id, openid=verified.openid, xid=verified.xid)
    return BindReply(social_account=social_account(bound), bp_auth=bp_auth_view(made))


async def _link(call: Call, proven: Proven) -> tuple[Link, BpAuth]:
    now = call.services.clock.now(call.app_id)
    async with call.services.database.transaction() as conn:
        await lock_caller(call, conn)
        await refuse_banned_identity(call.services, conn, proven.identity)
        link = await identities.link(conn, proven.identity, uid=call.caller.user, now=now, proven=proven.trusted)
        if link == "linked":
            platform = proven.identity.platform
            await report_change(call.services, conn, call.app_id, call.caller.user, "linked", platform=platform)
            await notify_user(call, conn, call.app_id, call.caller.user, "identity_linked")
            await store_verified(call, conn, proven)
        return link, await issue_bp_auth(call, conn, proven, now=now)


def _check(link: Link, made: BpAuth) -> None:
    """Raise the error of an identity that could not be linked."""
    view = bp_auth_view(made)
    credential: Mapping[str, object] | None = None if view is None else view.model_dump()
    match link:
        case "platform_taken":
            raise PlatformLinked("the user already has an identity of this platform", bp_auth=credential)
        case "identity_taken":
            raise IdentityLinked("the identity belongs to another user", bp_auth=credential)


async def unbind(call: Call, path: Path[IdentityPath]) -> None:
    """Unbind a third-party identity.

    The sessions that were made with it end. The last identity with which the user can log in cannot be unbound.
    """
    identity, now = _identity_of(call, path), call.services.clock.now(call.app_id)
    async with call.services.database.transaction() as conn:
        await lock_caller(call, conn)
        if not await unlink_identity(call.services, conn, identity, uid=call.caller.user):
            raise _not_found(path)
        await sessions.end(
            conn, call.app_id, call.caller.user, cache=call.services.sessions, now=now, identity=identity
        )
        await bp_auth.revoke_for(conn, identity)
        await notify_user(call, conn, call.app_id, call.caller.user, "identity_unlinked")


async def reauthorize(call: Call, path: Path[IdentityPath], body: Body[ReauthorizeBody]) -> SocialAccountReply:
    """Renew the access token of an identity.

    Only `social_network_a` supports this. The platform reports the `expiration_date` in the response; 0 means that
    the token does not expire.
    """
    if path.platform != _REAUTHORIZED:
        raise InvalidParameter(f"platform must be {_REAUTHORIZED}")
    identity, uid = _identity_of(call, path), call.caller.user
    async with call.services.database.connection() as conn:
        if await identities.find(conn, identity, uid=uid) is None:
            raise _not_found(path)
    async with LoginTrace(call, "reauthorize", path.platform) as trace:
        trace.identify(identity)
        proven = await third_party(_REAUTHORIZED)(call, body.social_network_a)
        if proven.identity != identity:
            trace.add("the proof is of another identity", seen="another one", allowed="the one that is renewed")
            raise ProofRefused
    async with call.services.database.transaction() as conn:
        await lock_caller(call, conn)
        if await identities.user_of(conn, identity) != uid:
            raise _not_found(path)
        await store_verified(call, conn, proven)
        linked = await identities.find(conn, identity, uid=uid)
    assert linked is not None, "the lock of the user keeps its identities"
    details = details_of(linked, call.app_id, keyring=call.services.keyring)
    return SocialAccountReply(
        social_account=SocialAccount(
            platform=linked.platform,
            id=linked.social_id,
            access_token=details.access_token or None,
            expiration_date=details.expiration_date,
        )
    )


def _identity_of(call: Call, path: IdentityPath) -> Identity:
    """Return the identity that a path names. Raises `IdentityNotFound` if it is not a third-party identity."""
    platform = PLATFORMS.get(path.platform)
    if platform is None or not platform.third_party:
        raise _not_found(path)
    return Identity(call.app_id, path.platform, path.id)


def _not_found(path: IdentityPath) -> IdentityNotFound:
    return IdentityNotFound(f"identity {listed([path.id])} at {listed([path.platform])} does not exist")
