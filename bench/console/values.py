"""The values of the parameters with which lists are called: of many rows, of few, and of none.

Parameters with a fixed set of values, such as `sort`, need no entry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import asyncpg

from bench.console.configs import PRODUCT
from bench.console.rows import APPS, BOARD, RARE, Size
from streams.wire.codec import rfc3339

MISSING = "missing"
"""A value that no row has."""


class Value(NamedTuple):
    label: str
    """Empty: the value with which all calls are made that do not name another one."""
    value: str


FIXED: Mapping[str, Mapping[str, str]] = {"/admin/api/configs": {"size": "50"}}
"""Parameters with which pages of a list are asked for, if it returns all entries without them."""

_NONE = "0" * 32
_SAMPLES = {
    "user_id": "select uid from wallet_orders where app_id = 'default' order by row_id offset 50 limit 1",
    "order": "select row_id from wallet_orders where app_id = 'default' order by row_id offset 50 limit 1",
    "order id": "select order_id from wallet_orders order by row_id offset 5 limit 1",
    "payment": "select intent_id from card_payments order by payment_id offset 5 limit 1",
    "invoice": "select sale_id from card_sales limit 1",
    "subscription": "select subscription_id from card_subscriptions order by row_id offset 5 limit 1",
    "wallet subscription": "select subscription_id from wallet_subscriptions order by row_id offset 5 limit 1",
    "withdrawal": "select withdrawal_id from withdrawals order by withdrawal_id offset 5 limit 1",
    "payout": "select payout_id from withdrawals order by withdrawal_id offset 5 limit 1",
    "stream_id": "select stream_id from attempts where app_id = 'default' order by stream_id offset 5 limit 1",
    "conversation_id": "select min(conversation_id) from conversation_records where app_id = 'default'",
    "prediction": "select prediction_id from predictions order by prediction_id offset 5 limit 1",
    "image": "select task_id from image_tasks order by task_id offset 5 limit 1",
    "mail": "select mail_id from mails order by mail_id offset 5 limit 1",
    "request": "select request_id from login_failures order by failure_id offset 5 limit 1",
    "failed user": "select uid from login_failures where app_id = 'default' and uid is not null limit 1",
    "failed id": "select social_id from login_failures where app_id = 'default' limit 1",
    "audited": "select name from audit where app_id = 'default' and kind = 'user' limit 1",
    "address": "select address from suppressions where app_id = 'default' order by address offset 5 limit 1",
    "middle id": "select pg_temp.bench_id(now() - interval '182 days', 5)",
}
_PERIOD = "select max(starts_at) from leaderboard_periods where app_id = 'default'"


@dataclass(frozen=True, slots=True)
class Values:
    middle_id: str
    """The cursor in the middle of a list in the order of ids that begin with the time."""
    _paths: Mapping[str, Sequence[Value]]
    _queries: Mapping[tuple[str, str], Sequence[Value]]

    def of_path(self, name: str) -> Sequence[Value]:
        """Return the values of a parameter of a path. The first one has no label."""
        return self._paths.get(name, ())

    def of_query(self, path: str, name: str) -> Sequence[Value]:
        """Return the values of a parameter of a query. `path` is the path of the row."""
        return self._queries.get((path, name)) or self._queries.get(("", name), ())


async def read_values(conn: asyncpg.Connection, size: Size, *, busy: str) -> Values:
    """Read ids of generated rows. `conn` is the connection that has filled the tables."""
    found = {name: str(await conn.fetchval(statement)) for name, statement in _SAMPLES.items()}
    found["period"] = rfc3339(await conn.fetchval(_PERIOD))
    own = ("order", "stream_id", "conversation_id", "period")
    paths = {name: [Value("", found[name])] for name in own} | {
        "app": [Value("", "default")],
        "user_id": [Value("", found["user_id"]), Value("of the busiest user", busy)],
        "kind": [Value("", PRODUCT.kind)],
        "name": [Value("", PRODUCT.name)],
        "board": [Value("", BOARD)],
    }
    return Values(found["middle id"], paths, _queries(found, size))


def _queries(found: Mapping[str, str], size: Size) -> dict[tuple[str, str], Sequence[Value]]:
    now = datetime.now(UTC)
    middle = size.users // 2
    given: dict[tuple[str, str], Sequence[str]] = {
        ("", "app"): [APPS[0], RARE, APPS[3], MISSING],
        ("", "size"): ["100"],
        ("", "revision"): ["1"],
        ("", "strategy"): ["news", "local", "seldom", MISSING],
        ("", "kinds"): ["login_failure", "asset,order", "operator"],
        ("/admin/api/configs", "kind"): ["apps", "products", "iplocation", MISSING],
        ("/admin/api/configs", "text"): ["coins", "app-01", "change 4", MISSING],
        ("/admin/api/configs", "offset"): [str(size.configs // 2)],
        ("/admin/api/mails", "status"): ["sent", "refused", MISSING],
        ("/admin/api/predictions", "status"): ["succeeded", "failed", "processing"],
        ("/admin/api/image_tasks", "status"): ["SUCCESS", "FAILURE", MISSING],
        ("/admin/api/payments/orders", "status"): ["succeeded", "COMPLETED", "requires_action", "VOIDED", MISSING],
        ("/admin/api/payments/subscriptions", "status"): ["active", "past_due", "SUSPENDED", MISSING],
        ("/admin/api/payments/mismatches", "kind"): ["missed_event", "amount_differs", "refund_failed"],
        ("/admin/api/payments/sales", "first"): [(now - timedelta(days=360)).date().isoformat()],
        ("/admin/api/payments/sales", "last"): [now.date().isoformat()],
        ("/admin/api/webhooks", "source"): ["cardpay", "payouts", "image_host"],
        ("/admin/api/events", "sink"): ["hook", "seldom", MISSING],
        ("/admin/api/login_failures", "request_id"): [found["request"], MISSING],
        ("/admin/api/login_failures", "platform"): ["email", "apple", MISSING],
        ("/admin/api/login_failures", "social_id"): [found["failed id"], MISSING],
        ("/admin/api/login_failures", "user_id"): [found["failed user"], _NONE],
        ("/admin/api/suppressions", "address"): [found["address"], f"{MISSING}@example.com"],
        ("/admin/api/audit", "actor"): ["operator1", "seldom", MISSING],
        ("/admin/api/audit", "action"): ["user.end_sessions", "withdrawal.settle", "stream.cancel"],
        ("/admin/api/audit", "kind"): ["user", "job"],
        ("/admin/api/audit", "name"): [found["audited"], MISSING],
        ("/admin/api/audit", "from"): [rfc3339(now - timedelta(days=1)), rfc3339(now - timedelta(days=300))],
        ("/admin/api/audit", "to"): [rfc3339(now - timedelta(days=200)), rfc3339(now - timedelta(days=900))],
        ("/admin/api/streams", "user_id"): [found["user_id"], _NONE],
        ("/admin/api/streams", "process"): [MISSING],
        ("/admin/api/ended_streams", "app"): [APPS[0], RARE],
        ("/admin/api/ended_streams", "user_id"): [found["user_id"], _NONE],
        ("/admin/api/ended_streams", "hours"): ["1", "720"],
        ("/admin/api/jobs/held", "job"): ["send_mail", "export_user"],
        ("/admin/api/jobs/held", "error"): ["backend unavailable", MISSING],
        ("/admin/api/jobs/held", "group"): ["send_mail.0", MISSING],
        ("/admin/api/jobs/held/groups", "job"): ["send_mail", "export_user"],
        ("/admin/api/jobs/held/groups", "error"): ["backend unavailable", MISSING],
        ("/admin/api/leaderboards/{app}/{board}/{period}/ranks", "from"): ["1"],
        ("/admin/api/leaderboards/{app}/{board}/{period}/ranks", "to"): ["1000"],
    }
    searched = {
        "a user id": found["user_id"],
        "an email address": f"user{middle // 10 * 10 + 1}@example.com",
        "the beginning of some addresses": f"user{middle // 1000}",
        "one letter": "u",
        "a phone number": f"+1{2000000000 + middle // 10 * 10 + 7}",
        "an earlier email address": "old7@example.com",
        "nothing": MISSING,
        "an unknown address": f"{MISSING}@example.com",
        "an unknown id": _NONE,
        **{
            f"a {name}": found[name]
            for name in ("order id", "payment", "invoice", "subscription", "wallet subscription")
        },
        **{f"a {name}": found[name] for name in ("withdrawal", "payout", "prediction", "image", "mail")},
        "a stream": found["stream_id"],
        "a conversation": found["conversation_id"],
    }
    queries = {key: [Value(_short(value), value) for value in values] for key, values in given.items()}
    return {**queries, ("/admin/api/users", "text"): [Value(label, value) for label, value in searched.items()]}


def _short(value: str) -> str:
    return value if len(value) < 26 else f"{value[:8]}…"
