"""Announcements of ended sessions, which every process receives through Valkey."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from storage.redis import Valkey
from storage.subscriptions import subscribe
from streams.wire.codec import dumps, loads

_TOPIC = "sessions"


class SessionKey(NamedTuple):
    """The key of a row of `sessions`."""

    app_id: str
    digest: str


def announcement(valkey: Valkey, app_id: str, digests: Collection[str]) -> tuple[str, str, bytes]:
    """Return the command that announces to all processes that sessions end."""
    return "PUBLISH", valkey.channel(_TOPIC), dumps([app_id, *digests])


async def listen(valkey: Valkey, on_ended: Callable[[Collection[SessionKey] | None], None]) -> None:
    """Call `on_ended` with the sessions of each announcement, until cancelled.

    It is called with `None` after each subscription, because announcements before it are lost.
    """

    def on_message(raw: bytes) -> None:
        app_id, *digests = loads(raw)
        on_ended([SessionKey(app_id, digest) for digest in digests])

    await subscribe(valkey, _TOPIC, on_message, on_subscribed=lambda: on_ended(None))
