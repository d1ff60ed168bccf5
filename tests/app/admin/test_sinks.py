"""Operators see which sinks have not accepted events, and what these sinks have answered."""

from tests.app.operator_calls import call
from tests.running.servers import Server

SINKS = "/admin/api/events/sinks"
SECRET = "whsec_c2FuZGJveC4uLi4uLi4uLi4uLi4uLi4u"
ADD = """
insert into reported_events (event_id, app_id, sink, event, uid, happened_at, data, error, due_at, dead_at)
select $1 || number, 'default', $1, 'sign_up', 'u', now(), '{}', 'sink answered 503', now() - interval '1 minute',
    case when number > 1 then now() end
from generate_series(1, 3) as numbers (number)
"""


async def test_sinks_are_listed_with_what_they_have_not_accepted(shared_server: Server) -> None:
    config = {"url": "http://127.0.0.1:1/events", "secret": SECRET, "events": ["account"]}
    for name in ("crm", "idle"):
        status, answer = await call(
            shared_server, "PUT", f"/admin/api/configs/default/events/{name}", {"value": config}
        )
        assert status == 200, answer
    async with shared_server.services.database.connection() as conn:
        for sink in ("crm", "deleted"):
            await conn.execute(ADD, sink)
    status, answer = await call(shared_server, "GET", SINKS)
    assert status == 200, answer
    found = [(row["sink"], row["exists"], row["waiting"], row["dead"]) for row in answer["sinks"]]
    assert found == [("crm", True, 1, 2), ("deleted", False, 1, 2), ("idle", True, 0, 0)]
    assert 59 < answer["sinks"][0]["oldest_s"] < 600
    assert await call(shared_server, "POST", "/admin/api/events/default/crm/retry", {}) == (200, {"retried": 3})
    _, answer = await call(shared_server, "GET", SINKS)
    assert [(row["sink"], row["waiting"], row["dead"]) for row in answer["sinks"]][:2] == [
        ("deleted", 1, 2),
        ("crm", 3, 0),
    ]
