"""Announcements of ended sessions, which every process receives through Valkey and PostgreSQL.

Valkey announces before the commit, PostgreSQL at the commit. So all processes learn of the end of a session even if
its own process cannot reach Valkey, or dies.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from storage.postgres import notifications
from storage.valkey.client import Valkey
from storage.valkey.subscriptions import subscribe
from streams.wire.codec import dumps, loads

_TOPIC = "sessions"
_CHANNEL = "ended_sessions"
NOTIFY = f"pg_notify('{_CHANNEL}', json_build_array(app_id, digest)::text)"
"""A column of a statement that ends sessions: announces each of them when the transaction commits.

PostgreSQL runs such commits one at a time, so logins that end the oldest sessions of a user do not announce this.
"""


class SessionKey(NamedTuple):
    """The key of a row of `sessions`."""

    app_id: str
    digest: str


def announcement(valkey: Valkey, app_id: str, digests: Collection[str]) -> tuple[str, str, bytes]:
    """Return the command that announces the end of sessions to all processes."""
    return valkey.message(_TOPIC, dumps([app_id, *digests]))


async def listen_for_announcements(
    valkey: Valkey, on_ended: Callable[[Collection[SessionKey] | None], None]
) -> None:
    """Call `on_ended` with the sessions of each announcement, until cancelled.

    It is called with `None` after each subscription, because announcements before it are lost.
    """

    def on_message(raw: bytes) -> None:
        app_id, *digests = loads(raw)
        on_ended([SessionKey(app_id, digest) for digest in digests])

    await subscribe(valkey, _TOPIC, on_message, on_subscribed=lambda: on_ended(None))


async def listen_for_commits(
    dsn: str, on_ended: Callable[[Collection[SessionKey]], None], *, on_checked: Callable[[float, float], None]
) -> None:
    """Call `on_ended` with each session whose end a committed transaction has announced, until cancelled.

    `on_checked`: see `notifications.listen`.
    """

    def on_message(raw: str) -> None:
        app_id, digest = loads(raw)
        on_ended([SessionKey(app_id, digest)])

    await notifications.listen(dsn, _CHANNEL, on_message, on_checked=on_checked)
