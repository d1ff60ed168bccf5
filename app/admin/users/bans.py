"""Admin API of users: bans."""

import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from app.account_states import impose_ban, lift_ban
from app.admin.area import FOR_EDITORS
from app.admin.reasons import origin_with_reason
from app.admin.users.users import USER_ERRORS, BanView, UserPath, ban_view, user_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path
from app.http.rows.transactions import Transaction
from storage.accounts import users
from storage.accounts.users import Ban
from storage.operators import audit
from storage.operators.audit import Action, Origin, Subject
from storage.postgres.database import Connection
from streams.wire.codec import rfc3339
from streams.wire.errors import InvalidParameter
from streams.wire.lines import has_visible
from streams.wire.model import Model, Moment

_REASON_CHARACTERS = 500
_LINE_ENDS = frozenset({"Cc", "Zl", "Zp"})


def _one_line(text: str) -> str:
    if any(unicodedata.category(char) in _LINE_ENDS for char in text):
        raise ValueError("must not contain control characters or line breaks")
    if not has_visible(text):
        raise ValueError("is required")
    return text.strip()


Reason = Annotated[str, Field(max_length=_REASON_CHARACTERS), AfterValidator(_one_line)]


class NewBan(Model):
    until: Moment | None = None
    """When the ban ends by itself. Without it, the ban has no end."""
    reason: Reason
    """Why the user is banned. It is part of the user's export."""


class LiftedBan(Model):
    reason: Reason | None = None
    """Why the ban ends. It can also be sent as `X-Parley-Reason`."""


class BannedUser(Model):
    """The status of the user and the ban, and how many sessions have ended."""

    status: str
    """`active`, `frozen` or `deactivated`."""
    ban: BanView | None = None
    """The ban that holds now."""
    ended_sessions: int = 0


async def ban_user(call: Call, transaction: Transaction, path: Path[UserPath], body: Body[NewBan]) -> BannedUser:
    """Ban a user.

    All sessions end, and so do their streams. Every login gets `operation_not_allowed` until the ban ends. A repeat
    with the same values changes nothing; other values replace those of the ban.
    """
    now = call.services.clock.now(path.app)
    if body.until is not None and body.until <= now:
        raise InvalidParameter("until must be in the future")
    async with transaction.begin() as conn:
        user = await user_of(call, conn, path, find=users.lock)
        before, ended = user.ban(now=now), 0
        ban = Ban(now if before is None else before.time, body.until, body.reason)
        if ban != before:
            ended = await impose_ban(call.services, conn, path.app, user.uid, ban=ban, now=now)
            origin = call.origin.with_reason(body.reason)
            await _record(conn, origin, path, action="user.ban", before=before, after=ban)
        return transaction.answer(BannedUser(status=user.status, ban=ban_view(ban), ended_sessions=ended))


async def unban_user(
    call: Call, transaction: Transaction, path: Path[UserPath], body: Body[LiftedBan]
) -> BannedUser:
    """End the ban of a user, who may be deactivated.

    The user can log in again, and the identities of a deactivated user can be used for a new account. If the user
    is not banned, nothing changes. A reason is required, as `reason` or in the header `X-Parley-Reason`.
    """
    origin = origin_with_reason(call) if body.reason is None else call.origin.with_reason(body.reason)
    async with transaction.begin() as conn:
        user = await user_of(call, conn, path, find=users.lock_any)
        before = user.ban(now=call.services.clock.now(path.app))
        if before is not None:
            await lift_ban(call.services, conn, path.app, user.uid)
            await _record(conn, origin, path, action="user.unban", before=before, after=None)
        return transaction.answer(BannedUser(status=user.status))


async def _record(
    conn: Connection, origin: Origin, path: UserPath, *, action: Action, before: Ban | None, after: Ban | None
) -> None:
    subject = Subject(path.app, "user", path.user_id)
    await audit.record_change(
        conn, origin, action=action, subject=subject, before=_audited(before), after=_audited(after)
    )


def _audited(ban: Ban | None) -> dict[str, Any]:
    if ban is None:
        return {"banned": False}
    return {"banned": True, "until": ban.until and rfc3339(ban.until), "reason": ban.reason}


_PATH = "/admin/api/users/{app}/{user_id}"

USER_BAN_ROUTES = [
    Endpoint("POST", f"{_PATH}/ban", ban_user, FOR_EDITORS, errors=USER_ERRORS),
    Endpoint("POST", f"{_PATH}/unban", unban_user, FOR_EDITORS, errors=USER_ERRORS),
]
