"""Passwords of users: checking new ones, proving an identity, and changing a password (§4.7)."""

from functools import partial

from pydantic import SecretStr

from app.accounts.errors import AccountAuthFailed
from app.accounts.mails.mails import notify_user
from app.accounts.passwords.rules import Password, check_password
from app.accounts.proofs import trace
from app.accounts.proofs.proofs import Proven
from app.accounts.proofs.throttle import Guess
from app.accounts.sessions.caller_lock import lock_caller
from app.accounts.sessions.revocation import revoke_access
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.password_hashing import Checked
from storage.accounts import passwords
from storage.accounts.identities import Identity
from storage.accounts.passwords import PasswordOwner
from storage.configs.kinds.auth import AUTH
from storage.postgres.database import Connection
from streams.wire.codec import rfc3339
from streams.wire.model import Model


def check_new(call: Call, password: SecretStr, *, field: str) -> None:
    """Raise `InvalidParameter`, which names `field`, if the app does not accept a new password."""
    check_password(password.get_secret_value(), call.services.configs.singleton(AUTH, call.app_id), field=field)


async def prove_by_password(call: Call, identity: Identity, password: SecretStr) -> Proven:
    """Check the password of an identity's user. Raises `AccountAuthFailed` and `TooManyFailedLogins`.

    An unknown identity costs the same work as a wrong password and has the same error.
    """
    async with call.services.database.connection() as conn:
        owner = await passwords.owner(conn, identity)
    guess = await Guess.begin(call, identity, None if owner is None else owner.uid)
    known_hash = None if owner is None else owner.password_hash
    checked = await _check(call, guess, password, known_hash)
    if owner is None or known_hash is None or not checked.right:
        _trace_refused(call, owner)
        raise AccountAuthFailed
    on_login = partial(_logged_in, call, owner.uid, known_hash=known_hash, checked=checked)
    return Proven(identity, creates_user=False, on_login=on_login)


def _trace_refused(call: Call, owner: PasswordOwner | None) -> None:
    if owner is None:
        trace.step(call, "user", seen="no user has this identity", allowed="a user with a password")
    elif owner.changed_at is None:
        trace.step(call, "user", seen="a user without a password", allowed="a user with a password")
    else:
        allowed = f"the one that was set at {rfc3339(owner.changed_at)}"
        trace.step(call, "password", seen="another one", allowed=allowed)


async def _check(call: Call, guess: Guess, password: SecretStr, known_hash: str | None) -> Checked:
    """Check a password. It counts as a failed login only if it was checked and is wrong."""
    checked = await call.services.passwords.check(password.get_secret_value(), known_hash)
    await guess.finish(right=checked.right)
    return checked


async def _logged_in(
    call: Call, owner: str, conn: Connection, uid: str, *, known_hash: str, checked: Checked
) -> None:
    """Check that the password has not been changed since, and replace an outdated hash."""
    if uid != owner or not await passwords.lock(conn, call.app_id, uid, known_hash=known_hash):
        trace.step(call, "password", seen="one that was changed during the login", allowed="the current one")
        raise AccountAuthFailed
    if checked.new_hash is not None:
        await passwords.rehash(conn, call.app_id, uid, old_hash=known_hash, new_hash=checked.new_hash)


class PasswordChange(Model):
    origin_password: Password
    """The current password."""
    password: Password
    """The new password: 8 to 256 characters, and none of the common passwords."""


async def change_password(call: Call, body: Body[PasswordChange]) -> None:
    """Change the password.

    All other sessions of the user end, earlier codes and tokens are revoked, and an unconfirmed change of the email
    address is cancelled.
    """
    app_id, uid, now = call.app_id, call.caller.user, call.services.clock.now(call.app_id)
    check_new(call, body.password, field="password")
    guess = await Guess.begin_of_caller(call)
    async with call.services.database.connection() as conn:
        old_hash = await passwords.find(conn, app_id, uid)
    checked = await _check(call, guess, body.origin_password, old_hash)
    if old_hash is None or not checked.right:
        raise AccountAuthFailed("origin_password is wrong")
    new_hash = await call.services.passwords.hash(body.password.get_secret_value())
    async with call.services.database.transaction() as conn:
        await lock_caller(call, conn)
        if not await passwords.change(conn, app_id, uid, old_hash=old_hash, new_hash=new_hash, now=now):
            raise AccountAuthFailed("origin_password is wrong")
        await revoke_access(call.services, conn, app_id, uid, now=now, keep=call.caller.session_id)
        await notify_user(call, conn, app_id, uid, "password_changed")
