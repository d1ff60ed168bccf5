"""Searches for users by what support knows: an id, an address, an order, a withdrawal, a stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from storage.accounts.identities import SECRET_IDS
from storage.accounts.users import Ban, Status, holding_ban
from storage.postgres.database import Connection
from storage.postgres.directions import directed

FoundBy = Literal[
    "user_id", "identity", "earlier_email", "order", "payment", "subscription", "withdrawal", "stream",
    "conversation", "prediction", "image", "mail",
]  # fmt: skip
"""What the search text names."""
ListedStatus = Status | Literal["banned"]
"""What a list can be limited to. Banned users can have any status."""


@dataclass(frozen=True, slots=True)
class FoundUser:
    app_id: str
    uid: str
    status: Status
    name: str
    create_time: datetime
    last_login: datetime
    banned_at: datetime | None
    ban_ends_at: datetime | None
    ban_reason: str
    identities: list[str]
    """The ids at platforms, except secret ones, as `platform: id`."""
    found_by: FoundBy | None = None
    """`None`: the user is listed, not searched for."""

    def ban(self, *, now: datetime) -> Ban | None:
        """Return the ban of the user, if it has not ended."""
        return holding_ban(self.banned_at, self.ban_ends_at, self.ban_reason, now=now)


_IDENTITIES = f"""
array(select platform || ': ' || social_id from identities i
    where i.uid = u.uid and i.app_id = u.app_id and platform <> all(array{list(SECRET_IDS)}) order by create_time)
"""
_IDENTITIES_OF = f"select {_IDENTITIES} from users u where app_id = $1 and uid = $2"


async def identities_of(conn: Connection, app_id: str, uid: str) -> list[str]:
    """Return the ids of a user at platforms, as `FoundUser.identities` does."""
    found: list[str] | None = await conn.fetchval(_IDENTITIES_OF, app_id, uid)
    return found or []


_COLUMNS = f"""
u.app_id, u.uid, u.status, u.name, u.create_time, u.last_login, u.banned_at, u.ban_ends_at, u.ban_reason,
{_IDENTITIES} as identities
"""
_PAGE = """
select {columns} from users u
where app_id = $1 and ($2::text is null or uid {{compare}} $2) and {condition} order by uid {{order}} limit $3
"""
_CONDITIONS = {
    None: "true",
    "active": "status = 'active'",
    "frozen": "status = 'frozen'",
    "deactivated": "status = 'deactivated'",
    "banned": "banned_at is not null and (ban_ends_at is null or ban_ends_at > $4)",
}
"""Conditions in SQL. Each has its own statement, so that pages of users who are not active use their index, as do
pages of banned users."""


async def page(
    conn: Connection,
    app_id: str,
    *,
    status: ListedStatus | None,
    oldest_first: bool,
    now: datetime,
    before: str | None,
    size: int,
) -> list[FoundUser]:
    """Return users of an app in the order of their creation, the newest first unless `oldest_first`."""
    statement = directed(_PAGE.format(columns=_COLUMNS, condition=_CONDITIONS[status]), oldest_first=oldest_first)
    at = [now] if status == "banned" else []
    return [FoundUser(**row) for row in await conn.fetch(statement, app_id, before, size, *at)]


# Each part uses an index. The parameters are the apps, the text, the text in lower case, and the end of the range
# of ids that begin with it.
_SEARCH = f"""
with found (app_id, uid, found_by) as (
    select app_id, uid, 'user_id' from users where app_id = any($1) and uid = $2
    union all (select app_id, uid, 'identity' from identities
        where lower(social_id) ~>=~ $3 and lower(social_id) ~<~ $4 and app_id = any($1)
        and platform <> all(array{list(SECRET_IDS)}) order by lower(social_id) using ~<~ limit $5)
    union all (select app_id, uid, 'earlier_email' from (
        select app_id, uid from earlier_emails where app_id = any($1) and address = $3
        union select app_id, uid from pending_emails where app_id = any($1) and address = $3) addresses
        where strpos($3, '@') > 0 limit $5)
    union all select app_id, uid, 'order' from wallet_orders where app_id = any($1) and (order_id = $2)
    union all select app_id, uid, 'order' from wallet_orders where row_id = $2 and app_id = any($1)
    union all select app_id, uid, 'payment' from card_payments where intent_id = $2 and app_id = any($1)
    union all select app_id, uid, 'payment' from card_payments where payment_id = $2 and app_id = any($1)
    union all select app_id, uid, 'payment' from card_sales where sale_id = $2 and app_id = any($1)
    union all select app_id, uid, 'payment' from asset_entries
        where app_id = any($1) and key = any(array[$2, 'wallet:capture:' || $2, 'wallet:sale:' || $2])
    union all select app_id, uid, 'subscription' from card_subscriptions
        where subscription_id = $2 and app_id = any($1)
    union all select app_id, uid, 'subscription' from wallet_subscriptions
        where app_id = any($1) and subscription_id = $2
    union all select app_id, uid, 'withdrawal' from withdrawals where withdrawal_id = $2 and app_id = any($1)
    union all select app_id, uid, 'withdrawal' from withdrawals where app_id = any($1) and app_withdraw_id = $2
    union all (select app_id, uid, 'withdrawal' from withdrawals
        where app_id = any($1) and payout_id = $2 and payout_id <> '' limit $5)
    union all (select app_id, uid, 'stream' from attempts where app_id = any($1) and stream_id = $2 limit 1)
    union all select app_id, uid, 'conversation' from conversations
        where app_id = any($1) and conversation_id = $2
    union all select app_id, uid, 'prediction' from predictions where prediction_id = $2 and app_id = any($1)
    union all select app_id, uid, 'image' from image_tasks where task_id = $2 and app_id = any($1)
    union all select app_id, uid, 'mail' from mails where mail_id = $2 and app_id = any($1)
), users_found as (select app_id, uid, min(found_by) as found_by from found group by app_id, uid limit $5)
select {_COLUMNS}, found_by from users_found join users u using (app_id, uid) order by u.app_id, u.uid desc
"""
_LAST_CHARACTER = "\U0010ffff"


async def search(conn: Connection, apps: Sequence[str], *, text: str, size: int) -> list[FoundUser]:
    """Return at most `size` users whom `text` names.

    `text` is the whole id of a user or of something that belongs to a user, or the beginning of an id at a
    platform, such as an address.
    """
    lower = text.lower()
    rows = await conn.fetch(_SEARCH, apps, text, lower, lower + _LAST_CHARACTER, size)
    return [FoundUser(**row) for row in rows]
