"""Admin API of a user: the current state of the account, and its history."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator

from app.admin.area import FOR_EDITORS
from app.admin.users.exports import ExportState, export_state
from app.admin.users.users import USER_ERRORS, BanView, UserPath, ban_view, user_of
from app.http.paging import Page, PageQuery, cursor, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, Query
from storage.accounts import user_history, users
from storage.accounts.sessions import listed_sessions
from storage.accounts.user_history import KINDS, Happened
from storage.accounts.users import Status
from storage.assets import assets
from storage.assets.assets import Asset
from storage.configs.kinds.auth import AUTH
from storage.userdata import exports, freezes
from streams.wire.codec import from_rfc3339, rfc3339
from streams.wire.model import Model


def _position(text: str) -> tuple[datetime, str, str] | None:
    at, kind, name = [*text.split("~", 2), "", ""][:3]
    try:
        return (from_rfc3339(at), kind, name) if kind in KINDS else None
    except ValueError:
        return None


def _known(text: str) -> str:
    kinds = text.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ValueError(f"must be some of {', '.join(KINDS)}, not {unknown[0][:64]}")
    return text


class HistoryQuery(PageQuery[Annotated[str, cursor(_position)]]):
    kinds: Annotated[str, AfterValidator(_known)] | None = None
    """List only entries of these kinds, comma-separated: `account`, `session`, `identity`, `login_failure`, `mail`,
    `asset`, `order`, `subscription`, `withdrawal`, `board`, `conversation`, `task`, `operator`."""


class HappenedRow(Model):
    at: str
    kind: str
    """One of the values of `kinds`."""
    id: str
    """The subject, such as the session or the order."""
    facts: dict[str, Any]
    """Further details, which depend on the kind. They contain no secrets and no texts of the user."""


class HistoryReply(Page[str]):
    """A page of the user's history."""

    history: list[HappenedRow]


class OwnedAsset(Model):
    name: str
    type: str
    """`consumable`, `nonconsumable` or `subscription`."""
    subscription: str
    """The platform's id of the subscription to which it belongs, or empty."""
    quantity: int
    """Units that are left."""
    valid: bool
    """Whether the user has it now."""
    ends_at: str | None = None
    """When the subscription ends."""
    origin: str
    bp_product_id: str
    receipt_id: str
    """The payment, order or subscription that granted it last."""


class AccountReply(Model):
    """The account of the user."""

    app: str
    user_id: str
    status: Status
    name: str
    cuid: str
    """The app's own id of the user."""
    created_at: str
    closes_at: str | None = None
    """When the freeze ends and the account is deactivated. Only for frozen users."""
    ban: BanView | None = None
    """The ban that holds. After a deactivation, the user's identities cannot be used until it ends."""
    sessions: int
    """The number of valid sessions."""
    restriction: str | None = None
    """Why the account can be neither frozen nor erased at the moment."""
    export: ExportState | None = None
    """The last export of the user's data, until its file is deleted."""
    assets: list[OwnedAsset]
    """The user's own assets, without those that others share with the user."""


async def read_user(call: Call, path: Path[UserPath]) -> AccountReply:
    """Read the account of a user, who may be deactivated."""
    services, now = call.services, call.services.clock.now(path.app)
    async with services.database.connection() as conn:
        user = await user_of(call, conn, path, find=users.find_any)
        sliding_s = services.configs.singleton(AUTH, path.app).session_sliding_s
        export = await exports.find(conn, path.app, user.uid)
        sessions = await listed_sessions(conn, path.app, user.uid, now=now, sliding_s=sliding_s)
        return AccountReply(
            app=path.app,
            user_id=user.uid,
            status=user.status,
            name=user.name,
            cuid=user.cuid,
            created_at=rfc3339(user.create_time),
            closes_at=None if user.close_time is None else rfc3339(user.close_time),
            ban=ban_view(user.ban(now=now)),
            sessions=len(sessions),
            restriction=await freezes.find_restriction(conn, path.app, user.uid),
            export=None if export is None else export_state(call, export),
            assets=[_owned(asset, now=now) for asset in await assets.of_user(conn, path.app, user.uid)],
        )


async def read_history(call: Call, path: Path[UserPath], query: Query[HistoryQuery]) -> HistoryReply:
    """List the history of a user.

    The newest comes first: sessions, identities, emails, assets, payments, withdrawals, scores, conversations,
    tasks, and changes by operators.
    """
    async with call.services.database.connection() as conn:
        await user_of(call, conn, path, find=users.find_any)
        found = await user_history.page(
            conn,
            path.app,
            path.user_id,
            kinds=query.kinds.split(",") if query.kinds else (),
            before=None if query.before is None else _position(query.before),
            size=query.size + 1,
        )
    page, further = page_of(found, query.size, _cursor)
    return HistoryReply(next=further, history=[_row(happened) for happened in page])


def _owned(asset: Asset, *, now: datetime) -> OwnedAsset:
    return OwnedAsset(
        name=asset.name,
        type=asset.type,
        subscription=asset.subscription,
        quantity=asset.units,
        valid=asset.is_valid(now),
        ends_at=None if asset.ends_at is None else rfc3339(asset.ends_at),
        origin=asset.origin,
        bp_product_id=asset.bp_product_id,
        receipt_id=asset.receipt_id,
    )


def _cursor(happened: Happened) -> str:
    return f"{rfc3339(happened.at)}~{happened.kind}~{happened.id}"


def _row(happened: Happened) -> HappenedRow:
    facts = {name: fact for name, fact in happened.facts.items() if fact is not None and fact != ""}
    return HappenedRow(at=rfc3339(happened.at), kind=happened.kind, id=happened.id, facts=facts)


_PATH = "/admin/api/users/{app}/{user_id}"

USER_HISTORY_ROUTES = [
    Endpoint("GET", _PATH, read_user, FOR_EDITORS, errors=USER_ERRORS),
    Endpoint("GET", f"{_PATH}/history", read_history, FOR_EDITORS, errors=USER_ERRORS),
]
