"""Admin API of users: changes of an account by operators, each with a reason."""

from typing import Any

from app.account_states import close, freeze, lift_freeze
from app.admin.apps import require_app
from app.admin.area import FOR_ADMINS, FOR_EDITORS
from app.admin.reasons import origin_with_reason
from app.admin.users.users import USER_ERRORS, UserPath, user_of
from app.http.errors import UserNotFound
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from app.http.rows.transactions import Transaction
from storage.accounts import identities, sessions, users
from storage.operators import audit
from storage.operators.audit import Action, Subject
from storage.postgres.database import Connection
from storage.userdata import freezes
from streams.wire.errors import Conflict, listed
from streams.wire.model import Model


class AccountRestricted(Conflict):
    """Something, which the message names, must end before the account can be frozen or erased."""


class AccountNotFrozen(Conflict):
    """The account is not frozen."""

    def __init__(self) -> None:
        super().__init__("the account is not frozen")


class ChangedUser(Model):
    """The status of the user, and how many sessions have ended."""

    status: str
    """`active`, `frozen` or `deactivated`."""
    ended_sessions: int = 0


async def end_sessions(call: Call, transaction: Transaction, path: Path[UserPath]) -> ChangedUser:
    """End all sessions of a user.

    Running streams end too. The header `X-Parley-Reason` is required.
    """
    origin_with_reason(call)
    now = call.services.clock.now(path.app)
    async with transaction.begin() as conn:
        user = await user_of(call, conn, path, find=users.lock)
        ended = await sessions.end(conn, path.app, user.uid, cache=call.services.sessions, now=now)
        await _record(call, conn, path, action="user.end_sessions", after={"ended_sessions": ended})
        return transaction.answer(ChangedUser(status=user.status, ended_sessions=ended))


async def freeze_user(call: Call, transaction: Transaction, path: Path[UserPath]) -> ChangedUser:
    """Freeze an account.

    It is deactivated after `deactivation.freeze_s` of the config `auth`, unless it is recovered. Users can do the
    same. The header `X-Parley-Reason` is required.
    """
    origin_with_reason(call)
    async with transaction.begin() as conn:
        user = await user_of(call, conn, path, find=users.lock)
        if user.status == "active":
            await _check_restriction(conn, path)
            await freeze(call.services, conn, path.app, user.uid, now=call.services.clock.now(path.app))
            await _record(call, conn, path, action="user.freeze", after={"status": "frozen"})
        return transaction.answer(ChangedUser(status="frozen"))


async def recover_user(call: Call, transaction: Transaction, path: Path[UserPath]) -> ChangedUser:
    """End the freeze of an account, which can then be used as before.

    The header `X-Parley-Reason` is required.
    """
    origin_with_reason(call)
    async with transaction.begin() as conn:
        user = await user_of(call, conn, path, find=users.lock)
        if user.status != "frozen":
            raise AccountNotFrozen
        await lift_freeze(call.services, conn, path.app, user.uid)
        await sessions.reread(conn, path.app, user.uid, cache=call.services.sessions)
        await _record(call, conn, path, action="user.recover", after={"status": "active"})
        return transaction.answer(ChangedUser(status="active"))


async def erase_user(call: Call, transaction: Transaction, path: Path[UserPath]) -> ChangedUser:
    """Deactivate a user now, deleting the user's data.

    This cannot be undone. The receipt of the user says what was deleted and what is kept. The header
    `X-Parley-Reason` is required.
    """
    origin_with_reason(call)
    require_app(call, path.app)
    async with transaction.begin() as conn:
        account = await identities.lock_account(conn, path.app, path.user_id)
        if account is None:
            raise UserNotFound(f"user {listed([path.user_id])} does not exist")
        await _check_restriction(conn, path)
        await close(call.services, conn, path.app, account, cause="operator")
        await _record(call, conn, path, action="user.erase", after={"status": "deactivated"})
        return transaction.answer(ChangedUser(status="deactivated"))


async def _check_restriction(conn: Connection, path: UserPath) -> None:
    if reason := await freezes.find_restriction(conn, path.app, path.user_id):
        raise AccountRestricted(reason)


async def _record(call: Call, conn: Connection, path: UserPath, *, action: Action, after: dict[str, Any]) -> None:
    subject = Subject(path.app, "user", path.user_id)
    await audit.record_change(conn, call.origin, action=action, subject=subject, after=after)


_PATH = "/admin/api/users/{app}/{user_id}"

USER_ACTION_ROUTES = [
    Endpoint("POST", f"{_PATH}/end_sessions", end_sessions, FOR_EDITORS, errors=USER_ERRORS),
    Endpoint("POST", f"{_PATH}/freeze", freeze_user, FOR_EDITORS, errors=(*USER_ERRORS, AccountRestricted)),
    Endpoint("POST", f"{_PATH}/recover", recover_user, FOR_EDITORS, errors=(*USER_ERRORS, AccountNotFrozen)),
    Endpoint("POST", f"{_PATH}/erase", erase_user, FOR_ADMINS, errors=(*USER_ERRORS, AccountRestricted)),
]
