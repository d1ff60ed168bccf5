"""The result of a proof, and the proofs that involve no third party."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from app.accounts.errors import AccountAuthFailed, AnonymousLoginNotAllowed
from app.accounts.proofs import trace
from app.accounts.proofs.addresses import login_config
from app.accounts.proofs.infos import LocalInfo
from app.http.rows.endpoint import Call
from storage.accounts import bp_auth, codes, emails
from storage.accounts.bp_auth import StoredBpAuth
from storage.accounts.codes import RightCode
from storage.accounts.identities import Identity
from storage.configs.kinds.auth import AUTH
from storage.postgres.database import Connection
from streams.wire.codec import rfc3339
from vendors.signin.protocols import VerifiedIdentity


@dataclass(frozen=True, slots=True)
class Proven:
    """An identity that the client has proven to be its own."""

    identity: Identity
    verified: VerifiedIdentity | None = None
    """The platform's report about the identity, if it is a third-party platform."""
    creates_user: bool = True
    """If false, an identity without a user is refused with `account.auth_failed`."""
    name: str = ""
    """The name of a new user."""
    trusted: bool = True
    """False if there is no proof but the client's own statement."""
    receives_mail: bool = False
    """Whether the client has shown that it receives emails to the address of the identity."""
    fetch_profile: bool = False
    """Whether a job fetches the profile of the identity."""
    on_login: Callable[[Connection, str], Awaitable[None]] | None = None
    """Called with the user's id in the transaction of the login. An error rolls the transaction back."""


Prove = Callable[[Call, Any], Awaitable[Proven]]
"""Checks the proof of an identity: the value of its platform in a request. Raises the client's error.

It is called before the transaction of the login, and holds no connection while it calls other systems.
"""

_BP_AUTH_REFUSED = "bp_auth_token is unknown, used or expired"
_BP_AUTH_ALLOWED = "one of this app that is neither used nor expired"


def local(platform: str) -> Prove:
    """Return the check of identities that only the client knows: it accepts any id."""

    async def prove(call: Call, info: LocalInfo) -> Proven:
        if not call.services.configs.singleton(AUTH, call.app_id).anonymous_login:
            raise AnonymousLoginNotAllowed("this app does not allow anonymous login")
        return Proven(Identity(call.app_id, platform, info.social_id), trusted=False)

    return prove


async def use_code(call: Call, right: RightCode, conn: Connection, _uid: str) -> None:
    """Consume a code in the transaction of a login."""
    await codes.use_code(conn, right, now=call.services.clock.now(call.app_id))


async def prove_bp_auth(call: Call, token: str) -> Proven:
    """Check a `bp_auth_token`. The transaction of the login consumes it."""
    now = call.services.clock.now(call.app_id)
    async with call.services.database.connection() as conn:
        found = await bp_auth.find(conn, token)
    if found is None:
        raise _refused(call, "one that is unknown, revoked or deleted after it expired")
    if found.identity.app_id != call.app_id:
        raise _refused(call, "one of another app")
    trace.identify(call, found.identity)
    _check_usable(call, found, now)
    identity = found.identity
    by_mail = identity.platform == emails.PLATFORM
    # The app may have disabled the login method since. The errors are the same as for a login with that method.
    if by_mail:
        login_config(call, "code_login")
    else:
        call.services.sign_in.open(call.app_id, identity.platform)
    return Proven(
        identity, trusted=found.proven, receives_mail=by_mail, on_login=partial(_use_bp_auth, token, call)
    )


def _check_usable(call: Call, found: StoredBpAuth, now: datetime) -> None:
    if found.used_at is not None:
        raise _refused(call, f"one that was used at {rfc3339(found.used_at)}")
    if found.expires_at <= now:
        raise _refused(call, f"one that expired at {rfc3339(found.expires_at)}")


def _refused(call: Call, seen: str) -> AccountAuthFailed:
    """Return the error for a `bp_auth_token`. `seen` is for the trace."""
    trace.step(call, "bp_auth_token", seen=seen, allowed=_BP_AUTH_ALLOWED)
    return AccountAuthFailed(_BP_AUTH_REFUSED)


async def _use_bp_auth(token: str, call: Call, conn: Connection, _uid: str) -> None:
    if not await bp_auth.use_token(conn, call.app_id, token=token, now=call.services.clock.now(call.app_id)):
        raise _refused(call, "one that another login has used meanwhile, or that was revoked meanwhile")
