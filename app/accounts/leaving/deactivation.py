"""The deactivation of an account: its freeze, its recovery, and its end (§3.1, §4.6)."""

from datetime import datetime

from app.account_states import close, freeze, lift_freeze
from app.accounts.errors import AccountNotFound, DeactivationRefused, NotFrozen
from app.accounts.mails.mails import notify_user
from app.accounts.sessions.caller_lock import lock_caller
from app.http.rows.endpoint import Call
from app.receipts import PublicKeys, ReceiptReply, find_receipt, public_keys
from app.services import Services
from storage.accounts import identities, sessions
from storage.accounts.users import User
from storage.postgres.database import Connection
from storage.userdata import freezes
from storage.userdata.freezes import EndFreeze
from streams.wire.errors import listed

_LOOK_AGAIN_S = 5
"""Delay after which a job runs again if the freeze has not ended yet. This happens because clocks differ."""


async def deactivate(call: Call) -> None:
    """Freeze the account before its deactivation.

    Nobody can log in while it is frozen. Its sessions are only accepted to recover the account, to confirm the
    deactivation, to read the user and to log out. After `deactivation.freeze_s` of the config `auth` (15 days), the
    account is deactivated. If it is frozen already, nothing changes.
    """
    services, app_id, uid, now = call.services, call.app_id, call.caller.user, call.services.clock.now(call.app_id)
    async with services.database.transaction() as conn:
        user = await lock_caller(call, conn)
        if user.status == "frozen":
            return
        if reason := await freezes.find_restriction(conn, app_id, uid):
            raise DeactivationRefused(reason)
        await notify_user(call, conn, app_id, uid, "account_frozen")
        await freeze(services, conn, app_id, uid, now=now)


async def confirm(call: Call) -> None:
    """Deactivate a frozen account now.

    The user's sessions end, and so do their streams. What the user has stored is deleted, and the identities
    can be used for a new account.
    """
    async with call.services.database.transaction() as conn:
        await _lock_frozen(call, conn)
        account = await identities.find_account(conn, call.app_id, call.caller.user)
        assert account is not None, "the lock of the user keeps it"
        await close(call.services, conn, call.app_id, account, cause="confirm")


async def recover(call: Call) -> None:
    """Recover a frozen account.

    This is possible until the freeze ends. The account can then be used as before.
    """
    services, app_id, uid = call.services, call.app_id, call.caller.user
    async with services.database.transaction() as conn:
        user = await _lock_frozen(call, conn)
        if has_ended(user, now=services.clock.now(app_id)):
            raise NotFrozen("the freeze of the account has ended")
        await lift_freeze(services, conn, app_id, uid)
        await sessions.reread(conn, app_id, uid, cache=services.sessions)


async def read_receipt(call: Call) -> ReceiptReply:
    """Read the receipt of a deactivated user.

    It says what was deleted, what is kept, and whether the tokens of sign-in platforms are revoked. It is signed.
    """
    receipt = await find_receipt(call.services, call.app_id, call.caller.user)
    if receipt is None:
        raise AccountNotFound(f"user {listed([call.caller.user])} does not exist, or is not deactivated")
    return receipt


async def read_keys(call: Call) -> PublicKeys:
    """Read the public keys that verify receipts, as a JWKS."""
    return public_keys(call.services.keyring)


async def end_freeze(services: Services, job: EndFreeze) -> None:
    """Deactivate a user whose freeze has ended, unless the account was recovered."""
    app_id, uid, now = job.app_id, job.uid, services.clock.now(job.app_id)
    async with services.database.transaction() as conn:
        account = await identities.lock_account(conn, app_id, uid)
        if account is None or account.user.close_time is None:
            return
        if has_ended(account.user, now=now):
            await close(services, conn, app_id, account, cause="freeze_end")
            return
        left_s = (account.user.close_time - now).total_seconds()
        await freezes.end_later(conn, app_id, uid, in_s=min(left_s, _LOOK_AGAIN_S))


def has_ended(user: User, *, now: datetime) -> bool:
    """Return whether the freeze of a user has ended."""
    return user.close_time is not None and now >= user.close_time


async def _lock_frozen(call: Call, conn: Connection) -> User:
    user = await lock_caller(call, conn)
    if user.status != "frozen":
        raise NotFrozen("the account is not frozen")
    return user
