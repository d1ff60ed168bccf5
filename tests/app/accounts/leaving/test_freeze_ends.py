"""A freeze of an account lasts for its length from every date."""

from datetime import UTC, datetime, timedelta

from streams.wire.codec import from_rfc3339
from tests.app.accounts.people import ask, new_user
from tests.calendar.hard_instants import walk
from tests.running.servers import Server

ENDPOINT = "/bp/user/me/deactivate"
FREEZE_ENDS = {
    "2027-01-28T12:00:00Z": "2027-02-12T12:00:00Z",
    "2027-01-29T12:00:00Z": "2027-02-13T12:00:00Z",
    "2027-01-30T12:00:00Z": "2027-02-14T12:00:00Z",
    "2027-01-31T12:00:00Z": "2027-02-15T12:00:00Z",
    "2027-02-28T12:00:00Z": "2027-03-15T12:00:00Z",
    "2027-03-14T07:00:00Z": "2027-03-29T07:00:00Z",
    "2027-03-28T01:00:00Z": "2027-04-12T01:00:00Z",
    "2027-03-31T12:00:00Z": "2027-04-15T12:00:00Z",
    "2027-10-31T01:00:00Z": "2027-11-15T01:00:00Z",
    "2027-11-07T06:00:00Z": "2027-11-22T06:00:00Z",
    "2027-12-31T23:59:59Z": "2028-01-15T23:59:59Z",
    "2028-01-01T00:00:00Z": "2028-01-16T00:00:00Z",
    "2028-02-29T12:00:00Z": "2028-03-15T12:00:00Z",
}
BUSY = timedelta(seconds=60)
"""The clock goes on during the test, by less than this."""


async def test_a_freeze_from_each_hard_instant_lasts_15_days(shared_server: Server) -> None:
    server = shared_server
    try:
        for instant, expected in walk(FREEZE_ENDS):
            ends = from_rfc3339(expected)
            await move(server, instant)
            _, session = await new_user(server)
            assert await ask(server, "POST", ENDPOINT, headers=session) == (200, None)
            assert timedelta() <= await shown_end(server, session) - ends < BUSY
            await move(server, ends - BUSY)
            assert timedelta() <= await shown_end(server, session) - ends < BUSY
            await move(server, ends + BUSY)
            status, reply = await ask(server, "POST", f"{ENDPOINT}/recover", headers=session)
            assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
    finally:
        await move(server, None)


async def shown_end(server: Server, session: dict[str, str]) -> datetime:
    """Return when the freeze ends, as a refused request shows it."""
    status, reply = await ask(server, "GET", "/bp/user/me/sessions", headers=session)
    assert (status, reply["error"]["error_type"]) == (400, "account.deactivate_pending_user")
    return datetime.fromtimestamp(reply["error"]["extra"]["deactivate_time_ms"] / 1000, UTC)


async def move(server: Server, to: datetime | None) -> None:
    at = None if to is None else to.isoformat()
    assert (await ask(server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
